import type { Event } from '@google/adk'

import type { Ending } from '../../../agent/call-responses.ts'
import { describeEnding, describeEndInside } from '../../../agent/call-responses.ts'
import { toEndingNotes } from '../../../agent/events/approval-notes.ts'
import { replayTurn } from '../../../agent/history/replay-turn.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { hasFollowUp } from '../../../calls/follow-ups.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Backend } from '../backend.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'

const MOVED_ON = 'the person wrote something else'

/**
 * Cancels the pending approvals of a chat, and writes the cancellations into its session for the model and the client. A live session
 * writes those of its own calls (`isWrittenThere`).
 */
export async function cancelPending(
  backend: Backend,
  chat: AppChatRef,
  isWrittenThere: (approval: Approval) => boolean = () => false,
): Promise<void> {
  const ended: Approval[] = []
  for (const approval of await backend.ledger.pendingOf(chat)) {
    // Asked before the cancellation, which removes the call from its live session.
    const isWritten = isWrittenThere(approval)
    const cancelled = await backend.ledger.cancel(approval.id, MOVED_ON)
    if (isRefusal(cancelled) || isWritten) continue
    await writeEnding(backend, cancelled)
    ended.push(cancelled)
  }
  await backend.waitingCalls.onCancelled(backend, chat, ended)
}

/** Writes the end of an approval whose call does not run into the session. */
export async function writeEnding(
  { sessions, ledger, kinds }: Pick<Backend, 'sessions' | 'ledger' | 'kinds'>,
  approval: Approval,
): Promise<void> {
  // The model does not know the question of a running call, and the end of its turn has ended it for clients.
  if (kinds.isAskedDuringCall(approval))
    return ledger.markReported(approval.chat, [approval.toolCallId])
  const ending = describeEnding(approval)
  if (!ending || (await hasFollowUp(approval, { ledger, kinds }))) return
  if (approval.terms.path) return writeEndingInside({ sessions, ledger }, approval, ending)
  const { chat, toolCallId: id, toolName: name, messageId } = approval
  const { response, note } = ending
  await sessions.append(chat, messageId, {
    content: { role: 'user', parts: [{ functionResponse: { id, name, response } }] },
    notes: { decided: [note] },
  })
  await ledger.markReported(chat, [id])
}

/**
 * Writes the end of a call inside an agent that is used as a tool. The agent does not continue, so this also ends the call of the agent
 * that the chat's agent made.
 */
async function writeEndingInside(
  { sessions, ledger }: Pick<Backend, 'sessions' | 'ledger'>,
  { chat, messageId, toolCallId: id, toolName: name }: Approval,
  { response, note }: Ending,
): Promise<void> {
  const turn = await sessions.findTurn(chat, messageId)
  const calls = turn && replayTurn(turn).state.calls
  const outerId = calls?.get(id)?.madeBy
  const outer = outerId === undefined ? undefined : calls?.get(outerId)
  if (outerId !== undefined && outer?.state === 'paused') {
    const ended = {
      id: outerId,
      name: outer.toolName,
      response: describeEndInside(name, response),
    }
    await sessions.append(chat, messageId, {
      content: { role: 'user', parts: [{ functionResponse: ended }] },
      notes: toEndingNotes('', { id, name, response }, note),
    })
  }
  await ledger.markReported(chat, [id])
}

/** Yields events after a cancellation. */
export async function* afterCancelling(
  cancel: () => Promise<void>,
  events: AsyncIterable<Event>,
): AsyncGenerator<Event> {
  await cancel()
  yield* events
}
