/** Why the emulator refused. */
export type EmulatorErrorCode =
  /** The script in the prompt cannot be read; the message shows the place and the right form. */
  | 'bad-script'
  /** The scenario does not have the documented shape. */
  | 'bad-scenario'
  /** The scenario file cannot be opened or is neither JSON nor YAML. */
  | 'unreadable-scenario'
  /** Every mind passed on the prompt. */
  | 'no-answer'
  | 'port-in-use'
  | 'cannot-listen'
  /** The emulator was closed while somebody waited on it. */
  | 'closed'

/** What goes wrong in the emulator itself, as opposed to the errors that it plays for its clients. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError'
  readonly code: EmulatorErrorCode

  constructor(code: EmulatorErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
