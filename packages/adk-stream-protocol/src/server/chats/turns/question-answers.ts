import type { Content } from '@google/genai'

import { describeEnding, toResponse } from '../../../agent/call-responses.ts'
import type { DecidedNote, EventNotes } from '../../../agent/events/event-notes.ts'
import type { Approval } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { DecisionResponse, OutputResponse } from '../../../protocol/read-responses.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'

/** Returns the response of a question for the model. Returns undefined while it is open. */
export function readAnswer(approval: Approval): Record<string, unknown> | undefined {
  const { state } = approval
  return state.name === 'approved' ? toResponse(state.payload) : describeEnding(approval)?.response
}

/** Converts the output of a client for the call of a question to a decision. */
export function toAnswer({ id, state }: Approval, { result }: OutputResponse): DecisionResponse {
  // Clients send the outputs of all calls of a message. For a question that was decided, the client continues with its outcome.
  if (state.name !== 'requested') return { approvalId: id, approved: state.name !== 'denied' }
  if (!('errorText' in result)) return { approvalId: id, approved: true, payload: result.output }
  const reason = result.errorText.slice(0, MAX_REASON)
  return { approvalId: id, approved: false, ...(reason !== '' && { reason }) }
}

const MAX_REASON = 2_000

/** Returns the open question of a running call in a chat. A chat has one turn at a time, and a turn one such question. */
export async function findOpenQuestion(
  backend: LazyBackend,
  chat: ChatRef,
): Promise<Approval | undefined> {
  const { ledger, kinds } = await backend.get()
  if (kinds.askedDuringCalls.length === 0) return undefined
  const pending = await ledger.pendingOf(toAppChat(ledger, chat))
  return pending.find((approval) => kinds.isAskedDuringCall(approval))
}

/** The questions whose responses are about to be stored in the conversation. */
export interface SettledQuestions {
  readonly toolCallIds: readonly string[]
  /** The notes to store with the responses. */
  readonly notes: EventNotes
}

/**
 * Records that the answers in responses were given to the agent. Returns undefined if there are none. After a crash the answer is
 * reported again: the ledger still has it.
 */
export async function settleQuestions(
  { ledger, kinds }: Pick<Backend, 'ledger' | 'kinds'>,
  chat: AppChatRef,
  { parts = [] }: Content,
): Promise<SettledQuestions | undefined> {
  const decided: DecidedNote[] = []
  for (const { functionResponse } of parts) {
    const approval = await ledger.findByCall(chat, functionResponse?.id ?? '')
    if (!approval || !kinds.isAnswerResult(approval)) continue
    const note = describeEnding(await settle(ledger, approval))?.note
    if (note) decided.push(note)
  }
  if (decided.length === 0) return undefined
  return { toolCallIds: decided.map(({ toolCallId }) => toolCallId), notes: { decided } }
}

async function settle(ledger: Ledger, approval: Approval): Promise<Approval> {
  const { id, state } = approval
  if (state.name !== 'approved') return approval
  const claimed = await ledger.claim(id, approval)
  const ended = isRefusal(claimed) ? claimed : await ledger.succeed(id, state.payload ?? null)
  return isRefusal(ended) ? approval : ended
}
