/** What a request asks the model to say. It travels as the text of the user's message, so every row gets it the same way. */
export interface Script {
  readonly tokens: number
  /** Characters of one token. */
  readonly length: number
  /** What the model does after the last token: it ends, or it falls silent until it is stopped. */
  readonly ending: 'end' | 'hold'
}

export const TOKEN_LENGTH = 20

/** What the models of this process have done; the measuring process asks for it. */
export const produced = { tokens: 0, ended: 0, lastEndMs: 0 }

export function tokenOf({ length }: Script): string {
  return 'lorem ipsum dolor sit amet, '.repeat(Math.ceil(length / 28)).slice(0, length)
}

export function readScript(text: string): Script {
  // Written by the load generator of the same run.
  return JSON.parse(text) as Script
}

/** Says the script one token per macrotask, as a network brings them. */
export async function* speak(script: Script, signal: AbortSignal): AsyncGenerator<string> {
  const token = tokenOf(script)
  for (let index = 0; index < script.tokens && !signal.aborted; index += 1) {
    await new Promise(setImmediate)
    produced.tokens += 1
    yield token
  }
  if (script.ending === 'hold') await whenAborted(signal)
}

/** A clock that all processes of a machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
