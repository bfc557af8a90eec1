/**
 * Why the voice does not work, so that a page can say what to do.
 *
 * @inline
 */
export type VoiceProblem =
  /** The user or the browser denied access to the microphone. */
  | { readonly code: 'permission-denied'; readonly cause?: unknown }
  | { readonly code: 'no-microphone'; readonly cause?: unknown }
  /** Another program uses the microphone. */
  | { readonly code: 'in-use'; readonly cause?: unknown }
  /** Browsers allow the microphone on HTTPS and localhost only. */
  | { readonly code: 'insecure-page' }
  /** The browser does not support it, or the worklet could not be loaded. */
  | { readonly code: 'unsupported'; readonly cause?: unknown }
  /** The microphone was unplugged, or the connection did not come back. */
  | { readonly code: 'lost'; readonly what: 'microphone' | 'connection' }

/** An error of an audio device. */
export class AudioError extends Error {
  override readonly name = 'AudioError'
  readonly problem: VoiceProblem

  constructor(problem: VoiceProblem) {
    super(
      `The voice is not available: ${problem.code}`,
      'cause' in problem ? { cause: problem.cause } : {},
    )
    this.problem = problem
  }
}

// The names of `getUserMedia`'s errors, in the specification and in browsers.
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
  // `OverconstrainedError` is not an `Error` in every browser.
  const name = typeof error === 'object' && error !== null && 'name' in error ? error.name : ''
  return { code: CODES[String(name)] ?? 'unsupported', cause: error }
}
