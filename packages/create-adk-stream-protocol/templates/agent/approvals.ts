import type { ApprovalPolicy } from 'adk-stream-protocol/server'

export const approvals: ApprovalPolicy = {
  process_payment: ({ args }) => {
    const amount = Number(args.amount)
    return {
      // Only small amounts need no approval. `amount >= 10` would let a negative or missing amount pass.
      required: !(amount > 0 && amount < 10),
      hint: `Send $${amount} to ${String(args.recipient)}?`,
      severity: amount <= 500 ? 'medium' : 'high',
    }
  },
}
