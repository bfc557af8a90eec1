interface WireChunk {
  readonly type: string
  readonly [key: string]: unknown
}

/** Returns what is wrong with the body of a UI message stream: its frames, and the order of its chunks. */
export function findChunkFaults(body: string): string[] {
  const faults: string[] = []
  const order = new ChunkOrder(faults)
  for (const frame of body.split(/\r?\n\r?\n/)) {
    const data = frame
      .split(/\r?\n/)
      .flatMap((line) => (line.startsWith('data:') ? [line.slice(5).trimStart()] : []))
      .join('\n')
    if (data === '' || data === '[DONE]') continue
    const chunk = parse(data)
    if (chunk) order.read(chunk)
    else faults.push(`a frame is no chunk: ${data.slice(0, 60)}`)
  }
  order.end()
  return faults
}

function parse(data: string): WireChunk | undefined {
  try {
    const value: unknown = JSON.parse(data)
    const isChunk = typeof value === 'object' && value !== null && 'type' in value
    // `type` was found just now.
    return isChunk && typeof value.type === 'string' ? (value as WireChunk) : undefined
  } catch {
    return undefined
  }
}

/** The order that the AI SDK's documentation and client require. */
class ChunkOrder {
  readonly #faults: string[]
  readonly #texts = new Set<unknown>()
  readonly #calls = new Set<unknown>()
  readonly #settled = new Set<unknown>()
  #count = 0
  #starts = 0
  #step: 'open' | 'closed' = 'closed'
  #end: string | undefined

  constructor(faults: string[]) {
    this.#faults = faults
  }

  read(chunk: WireChunk): void {
    const { type, id, toolCallId } = chunk
    if (this.#end !== undefined) this.#faults.push(`${type} after ${this.#end}`)
    this.#count += 1
    if (type === 'start') this.#starts += 1
    else if (type === 'start-step' || type === 'finish-step') this.#readStep(type)
    else if (type === 'finish' || type === 'error' || type === 'abort') this.#end = type
    const [, act] = /^(?:text|reasoning)-(start|delta|end)$/.exec(type) ?? []
    if (act !== undefined) this.#readText(type, act, id)
    if (type.startsWith('tool-')) this.#readCall(type, toolCallId)
  }

  end(): void {
    if (this.#count === 0) return
    if (this.#starts > 1) this.#faults.push('start comes more than once')
    if (this.#end === undefined) this.#faults.push('the stream has no finish, error or abort')
    if (this.#end !== 'finish') return
    if (this.#step === 'open') this.#faults.push('the last step is not finished')
    if (this.#texts.size > 0) this.#faults.push('a text is not ended')
  }

  #readStep(type: 'start-step' | 'finish-step'): void {
    const next = type === 'start-step' ? 'open' : 'closed'
    if (next === this.#step) this.#faults.push(`${type} twice`)
    this.#step = next
  }

  #readText(type: string, act: string, id: unknown): void {
    if ((act === 'start') === this.#texts.has(id))
      this.#faults.push(`${type} of a text that is ${act === 'start' ? 'open' : 'not open'}`)
    if (act === 'start') this.#texts.add(id)
    if (act === 'end') this.#texts.delete(id)
  }

  #readCall(type: string, id: unknown): void {
    if (type.startsWith('tool-input-')) this.#calls.add(id)
    // A stream that continues a message may begin with the result of a call that an earlier stream has shown.
    if (type === 'tool-approval-request' && !this.#calls.has(id))
      this.#faults.push(`${type} of a call that was not shown`)
    if (type === 'tool-approval-request' && this.#settled.has(id))
      this.#faults.push(`${type} of a call that has a result`)
    if (type.startsWith('tool-output-')) this.#settled.add(id)
  }
}
