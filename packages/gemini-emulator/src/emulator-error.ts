/** The reason for an `EmulatorError`. */
export type EmulatorErrorCode =
  /** The script in the prompt is invalid. The message shows the position and the expected form. */
  | 'bad-script'
  /** The scenario does not have the documented shape. */
  | 'bad-scenario'
  /** The scenario file cannot be read, or is neither JSON nor YAML. */
  | 'unreadable-scenario'
  /** No responder returned actions for the prompt. */
  | 'no-reply'
  | 'port-in-use'
  | 'cannot-listen'
  /** The emulator or the session closed while a call was waiting for it. */
  | 'closed'

/** An error of the emulator itself, as opposed to the Gemini errors that it sends to clients. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError'
  readonly code: EmulatorErrorCode

  constructor(code: EmulatorErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
