import type { Approval } from '../../../approvals/approval.ts'
import { mayReply } from '../../../approvals/deciders.ts'
import { understandReply } from '../../../approvals/understand-reply.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { UserMessage } from '../../../protocol/stream-request.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import { findStoredCall } from '../host/stored-calls.ts'
import type { ApprovalDecisions } from './approval-decisions.ts'
import { toDecider } from './decision-results.ts'
import type { ShownReply } from '../../../protocol/message.ts'

/** A reply of a person, and whether it may decide an approval: an approval of a live session is decided in its session. */
interface GivenReply extends ShownQuestions {
  readonly reply: ShownReply
  readonly isInReach: (approval: Approval) => boolean
}

/** What the page showed when the person replied. */
interface ShownQuestions {
  /** The approvals and questions that it showed as open. Undefined if the client does not say. */
  readonly openApprovals?: readonly string[] | undefined
}

/**
 * Lets a short reply of a person decide the only open question of a chat, if the policy accepts replies. Returns undefined, and changes
 * nothing, if the reply is an ordinary message.
 */
export type DecideByReply = (
  principal: Principal,
  chat: ChatRef,
  given: GivenReply,
) => Promise<Approval | undefined>

/** AP1120: throws if a reply was to a question that is no longer the only open one. Otherwise the words would go to the model. */
export type CheckReply = (
  principal: Principal,
  chat: ChatRef,
  shown: ShownQuestions,
) => Promise<void>

export function createReplyCheck(lazyBackend: LazyBackend): CheckReply {
  return async (principal, chat, { openApprovals = [] }) => {
    const [id, ...others] = openApprovals
    if (id === undefined || others.length > 0) return
    const backend = await lazyBackend.get()
    const key = toAppChat(backend, chat)
    const shown = await backend.ledger.get(id)
    if (shown?.chat.chatId !== chat.chatId || !mayReply(shown, toDecider(principal))) return
    const pending = await backend.ledger.pendingOf(key)
    if (pending.length !== 1 || pending[0]?.id !== id) throw new ProtocolError('reply-outdated')
  }
}

export function createReplyDecision({
  backend: lazyBackend,
  decisions,
}: {
  readonly backend: LazyBackend
  readonly decisions: Pick<ApprovalDecisions, 'decideByReply'>
}): DecideByReply {
  return async (principal, chat, { reply, isInReach, openApprovals }) => {
    const meaning = understandReply(reply.words)
    if (meaning === undefined) return undefined
    const backend = await lazyBackend.get()
    const [approval, ...others] = await backend.ledger.pendingOf(toAppChat(backend, chat))
    if (!approval || others.length > 0 || !isInReach(approval)) return undefined
    // The page did not show this question, or showed others.
    if (openApprovals && openApprovals.join() !== approval.id) return undefined
    const shown = await findStoredCall(backend, chat, approval.toolCallId)
    if (shown?.call.state !== 'asked') return undefined
    const approved = meaning === 'approve'
    const { preview: seen } = shown.call.approval ?? {}
    if (!mayReply(approval, toDecider(principal), seen)) return undefined
    const preview = seen?.digest
    // The person agrees to what the chat showed with the question.
    if (approved && approval.terms.preview !== undefined && preview === undefined) return undefined
    const decision = {
      approvalId: approval.id,
      approved,
      ...(approved && preview !== undefined && { preview }),
    }
    return decisions.decideByReply(principal, chat, { decision, reply })
  }
}

/** Returns the text of a message that may be a reply to a question: a message of one text. */
export function readReply({ parts }: UserMessage): ShownReply | undefined {
  const [part, ...others] = parts
  if (part?.type !== 'text' || others.length > 0) return undefined
  return understandReply(part.text) && { words: part.text, channel: 'typed' }
}
