/** A browser tool failed. The model receives the message. */
export class BrowserToolError extends Error {
  override readonly name = 'BrowserToolError'
}
