export type ApprovalErrorCode = 'invalid' | 'contended'

/** What the ledger cannot do; a refusal of a command is a value, not an error. */
export class ApprovalError extends Error {
  override readonly name = 'ApprovalError'
  readonly code: ApprovalErrorCode

  constructor(code: ApprovalErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
