export type ApprovalErrorCode = 'invalid' | 'contended'

/** An error of the ledger itself. A rejected command is not an error but a `Refusal`. */
export class ApprovalError extends Error {
  override readonly name = 'ApprovalError'
  readonly code: ApprovalErrorCode

  constructor(code: ApprovalErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
