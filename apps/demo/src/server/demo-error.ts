export type DemoErrorCode = 'bad-setting' | 'port-in-use' | 'cannot-listen' | 'page-missing'

/** The demo cannot start. The message is printed in the terminal and says what to do. */
export class DemoError extends Error {
  override readonly name = 'DemoError'
  readonly code: DemoErrorCode

  constructor(code: DemoErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
