import * as z from 'zod'

/** What a policy says about replies. */
export interface ReplyPolicy {
  /**
   * Whether a short reply of the owner of the chat, such as "yes, send it" or 「いいえ」, decides the call, typed or spoken, if no other
   * question is open. Has no effect if `severity` is `high`, if several people decide, or if the tool asks for a payload. Default false.
   */
  readonly acceptReplies?: boolean | undefined
}

export const ReplyPolicySchema = { acceptReplies: z.boolean().optional() }

/** What the ledger stores about replies. */
export interface ReplyTerms {
  /** Whether a short reply in the chat decides the call. */
  readonly acceptsReplies?: true
}

interface ReplyNeeds extends ReplyPolicy {
  readonly severity?: 'low' | 'medium' | 'high' | undefined
  /** Whether one person decides the call. */
  readonly isDecidedByOne: boolean
}

/** A reply cannot replace a decision of several people, a payload, or the hold that clients require for a severe call. */
export function toReplyTerms(needs: ReplyNeeds, payload: unknown): ReplyTerms {
  const accepts = needs.acceptReplies && !findReplyFault(needs) && payload === undefined
  return accepts ? { acceptsReplies: true } : {}
}

/** Returns why a reply in the chat can never decide a call, if the policy accepts replies. */
export function findReplyFault({
  acceptReplies,
  severity,
  isDecidedByOne,
}: ReplyNeeds): { readonly field: 'acceptReplies'; readonly fault: string } | undefined {
  const isSevere = severity === 'high'
  if (!acceptReplies || (isDecidedByOne && !isSevere)) return undefined
  const why = isSevere ? 'with severity `high`' : 'if several people decide'
  const fault = `is not possible ${why}. Remove it: people then decide in the form.`
  return { field: 'acceptReplies', fault }
}
