/** A tool of the browser could not do its work; the message is a sentence for the model. */
export class BrowserToolError extends Error {
  override readonly name = 'BrowserToolError'
}
