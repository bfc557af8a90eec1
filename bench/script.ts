/** The reply that a request asks for. It is the text of the user's message, so every row receives it in the same way. */
export interface Script {
  readonly tokens: number
  /** The number of characters of a token. */
  readonly length: number
  /** After the last token, the reply ends, or the model pauses until it is aborted. */
  readonly ending: 'end' | 'hold'
}

export const TOKEN_LENGTH = 20

/** Counters of the models of this process. The measuring process reads them. */
export const produced = { tokens: 0, ended: 0, lastEndMs: 0 }

export function tokenOf({ length }: Script): string {
  return 'lorem ipsum dolor sit amet, '.repeat(Math.ceil(length / 28)).slice(0, length)
}

export function readScript(text: string): Script {
  // Written by the load generator of the same run.
  return JSON.parse(text) as Script
}

/** Yields the tokens of a script, one per macrotask, as they would arrive from a network. */
export async function* speak(script: Script, signal: AbortSignal): AsyncGenerator<string> {
  const token = tokenOf(script)
  for (let index = 0; index < script.tokens && !signal.aborted; index += 1) {
    await new Promise(setImmediate)
    produced.tokens += 1
    yield token
  }
  if (script.ending === 'hold') await whenAborted(signal)
}

/** Returns the time of a monotonic clock that all processes of a machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
