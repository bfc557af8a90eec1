import type { Approval } from '../../../approvals/approval.ts'
import type { DecidingWords } from '../../../protocol/decision-evidence.ts'
import type { UserMessage } from '../../../protocol/stream-request.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { Principal } from '../../auth/authenticate.ts'

/** Returns the decision that a person's words may be. Returns undefined for an ordinary message. */
export type ReadDecision = (said: DecidingWords) => MessageDecision | undefined

/** A message that may decide the open question of its chat. */
export interface MessageDecision {
  /** Throws if the message answers a question that is no longer the open one. */
  check(principal: Principal, chat: ChatRef, shown: ShownQuestions): Promise<void>
  /** Records the decision. The caller resumes the turn. Returns undefined, and changes nothing, if the message is an ordinary one. */
  decide(principal: Principal, chat: ChatRef, given: GivenMessage): Promise<Approval | undefined>
}

/** What the page showed when the person wrote the message. */
interface ShownQuestions {
  /** The approvals and questions that it showed as open. Undefined if the client does not say. */
  readonly openApprovals?: readonly string[] | undefined
}

interface GivenMessage extends ShownQuestions {
  /** Whether the message may decide an approval: an approval of a live session is decided in its session. */
  readonly isInReach: (approval: Approval) => boolean
}

/** Returns the decision that a typed message may be. A message of more than one text is none. */
export function readTyped(read: ReadDecision, { parts }: UserMessage): MessageDecision | undefined {
  const [part, ...others] = parts
  if (part?.type !== 'text' || others.length > 0) return undefined
  return read({ words: part.text, channel: 'typed' })
}
