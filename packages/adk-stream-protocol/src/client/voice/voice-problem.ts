/** Why there is no voice, told so that a page can say what to do. */
export type VoiceProblem =
  /** The person, or the browser for them, refused the microphone. */
  | { readonly code: 'permission-denied'; readonly cause?: unknown }
  | { readonly code: 'no-microphone'; readonly cause?: unknown }
  /** Another program holds the microphone. */
  | { readonly code: 'in-use'; readonly cause?: unknown }
  /** Browsers give the microphone to pages of HTTPS and localhost only. */
  | { readonly code: 'insecure-page' }
  /** The browser cannot do it, or the worklet could not be loaded. */
  | { readonly code: 'unsupported'; readonly cause?: unknown }
  /** It worked, and does no more: the microphone was pulled out, or the connection did not come back. */
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

/** What an audio device cannot do. */
export class AudioError extends Error {
  override readonly name = 'AudioError'
  readonly problem: VoiceProblem

  constructor(problem: VoiceProblem) {
    super(`There is no voice: ${problem.code}`, 'cause' in problem ? { cause: problem.cause } : {})
    this.problem = problem
  }
}

// The names of `getUserMedia`'s errors, by the specification and by what browsers give.
const CODES: Readonly<Record<string, 'permission-denied' | 'no-microphone' | 'in-use'>> = {
  NotAllowedError: 'permission-denied',
  SecurityError: 'permission-denied',
  NotFoundError: 'no-microphone',
  OverconstrainedError: 'no-microphone',
  NotReadableError: 'in-use',
  AbortError: 'in-use',
}

export function toProblem(error: unknown): VoiceProblem {
  if (error instanceof AudioError) return error.problem
  // `OverconstrainedError` is no `Error` in every browser.
  const name = typeof error === 'object' && error !== null && 'name' in error ? error.name : ''
  return { code: CODES[String(name)] ?? 'unsupported', cause: error }
}
