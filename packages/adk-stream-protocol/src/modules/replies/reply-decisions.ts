import type { Approval } from '../../approvals/approval.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { isDecidedAloneBy } from '../../approvals/deciders.ts'
import type { DecisionMeans } from '../../approvals/next-approval.ts'
import { assessRisk } from '../../approvals/risk.ts'
import type { DecidingWords } from '../../protocol/decision-evidence.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Preview } from '../../protocol/preview.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import { toDecider } from '../../server/chats/decisions/decision-results.ts'
import type { MessageDecision } from '../../server/chats/decisions/message-decisions.ts'
import { findStoredCall } from '../../server/chats/host/stored-calls.ts'
import type { DecisionCore } from '../module.ts'

interface Reply {
  readonly reply: DecidingWords
  readonly approved: boolean
}

/** Lets a short reply of a person decide the only open question of a chat, if the policy accepts replies. */
export function createReplyDecision(
  core: DecisionCore,
  { reply, approved }: Reply,
): MessageDecision {
  return {
    // AP1120: otherwise the words would go to the model.
    check: async (principal, chat, { openApprovals = [] }) => {
      const [id, ...others] = openApprovals
      if (id === undefined || others.length > 0) return
      const backend = await core.backend.get()
      const key = toAppChat(backend, chat)
      const shown = await backend.ledger.get(id)
      if (shown?.chat.chatId !== chat.chatId || !mayReply(shown, toDecider(principal))) return
      const pending = await backend.ledger.pendingOf(key)
      if (pending.length !== 1 || pending[0]?.id !== id) throw new ProtocolError('reply-outdated')
    },
    decide: async (principal, chat, { isInReach, openApprovals }) => {
      const backend = await core.backend.get()
      const [approval, ...others] = await backend.ledger.pendingOf(toAppChat(backend, chat))
      if (!approval || others.length > 0 || !isInReach(approval)) return undefined
      // The page did not show this question, or showed others.
      if (openApprovals && openApprovals.join() !== approval.id) return undefined
      const shown = await findStoredCall(backend, chat, approval.toolCallId)
      if (shown?.call.state !== 'asked') return undefined
      const { preview: seen } = shown.call.approval ?? {}
      if (!mayReply(approval, toDecider(principal), seen)) return undefined
      const preview = seen?.digest
      // The person agrees to what the chat showed with the question.
      if (approved && approval.terms.preview !== undefined && preview === undefined)
        return undefined
      const agreed = approved && preview !== undefined && { preview }
      const decision = { approvalId: approval.id, approved, ...agreed }
      return core.decisions.recordInChat(principal, chat, { decision, means: byReply(reply) })
    },
  }
}

/** A decision by a message in the chat. Refused if the terms do not accept replies. */
function byReply(reply: DecidingWords): DecisionMeans {
  return (approval, { by }) => (mayReply(approval, by) ? { reply } : { refused: 'not-allowed' })
}

/** Whether a reply of this principal in the chat may decide an approval, which was shown with this preview. */
function mayReply(approval: Approval, by: Decider, preview?: Pick<Preview, 'headline'>): boolean {
  const { chat, terms } = approval
  const { severity, misleading = false } = assessRisk(approval, preview)
  const isOwner = chat.principalId === by.id
  const isApproval = terms.kind === undefined && terms.acceptsReplies === true
  const isClear = severity !== 'high' && !misleading
  return isOwner && isApproval && isClear && isDecidedAloneBy(terms, by)
}
