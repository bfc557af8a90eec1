/** What the measuring process asks of a process that talks. */
export type Order =
  | { readonly do: 'open'; readonly count: number }
  | { readonly do: 'say'; readonly text: string }
  | { readonly do: 'read' }

export interface LiveReading {
  readonly cpuMs: number
  readonly heapBytes: number
}

export interface Talk {
  readonly open: (count: number) => Promise<void>
  readonly say: (text: string) => Promise<void>
}

/** Does what the measuring process asks, one thing after the other; says first where it listens, if it does. */
export function answerParent({ open, say }: Talk, port = 0): void {
  const carryOut = async (order: Order): Promise<unknown> => {
    if (order.do === 'open') return open(order.count)
    if (order.do === 'say') return say(order.text)
    return readSelf()
  }
  process.on('message', (order: Order) => {
    carryOut(order).then(
      (answer) => process.send?.(answer ?? null),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  })
  process.on('disconnect', () => process.exit())
  process.send?.(port)
}

async function readSelf(): Promise<LiveReading> {
  // Twice, with a pause: what finalisers release is collected by the second.
  for (let round = 0; round < 2; round += 1) {
    globalThis.gc?.()
    await new Promise(setImmediate)
  }
  const { user, system } = process.cpuUsage()
  const { heapUsed, external } = process.memoryUsage()
  return { cpuMs: (user + system) / 1000, heapBytes: heapUsed + external }
}
