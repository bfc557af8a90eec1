import { UNKNOWN } from '../../../agent/call-responses.ts'
import { replayTurn } from '../../../agent/history/replay-turn.ts'
import type { Approval } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { CallKind } from '../../../calls/call-kind.ts'
import { withoutUndefined } from '../../../shared/collections.ts'
import type { Backend, LazyBackend } from '../backend.ts'

const LOST = 'the server that ran the call has stopped'
const PAGE = 100

/** Returns a sweep that cancels the questions of running calls whose process has crashed. It does nothing if it is called too often. */
export function createLostQuestionSweep(backend: LazyBackend): () => Promise<void> {
  let sweptAt = -Infinity
  return async () => {
    const opened = await backend.get()
    const { ledger, kinds } = opened
    if (kinds.askedDuringCalls.length === 0) return
    // A process that crashed keeps its chats locked for as long as its lease.
    if (performance.now() - sweptAt < ledger.leaseMs) return
    sweptAt = performance.now()
    for (const { name } of kinds.askedDuringCalls) await sweep(opened, name)
  }
}

/** Ends the lost questions of one kind. */
async function sweep(backend: Backend, kind: CallKind['name']): Promise<void> {
  const { ledger, kinds } = backend
  for (let after: string | undefined; ;) {
    const pending = await ledger.list({
      states: ['requested'],
      limit: PAGE,
      ...withoutUndefined({ kind, after }),
    })
    // A store of an application may not know the kind.
    const asked = pending.filter((approval) => kinds.isAskedDuringCall(approval))
    for (const approval of asked) await endIfLost(backend, approval)
    after = pending.at(-1)?.id
    if (pending.length < PAGE) return
  }
}

/** Cancels a question if no process runs the call that asked it, and ends the call in the conversation. */
async function endIfLost(backend: Pick<Backend, 'ledger' | 'sessions'>, approval: Approval) {
  if (await cancelIfLost(backend.ledger, approval)) await endAskingCall(backend, approval)
}

/** Cancels a question if no process runs the call that asked it. Returns whether it was cancelled. */
export async function cancelIfLost(ledger: Ledger, approval: Approval): Promise<boolean> {
  const { id, chat, toolCallId } = approval
  if (ledger.waitsHere(approval)) return false
  // A turn locks its chat for as long as it runs, and a live session has a lock of its own.
  if (!(await ledger.locks.isUnused(chat))) return false
  const cancelled = await ledger.cancel(id, LOST)
  await ledger.markReported(chat, [toolCallId])
  return !isRefusal(cancelled)
}

/** Stores that the outcome of the call that asked is unknown, so that people and the model learn it. */
async function endAskingCall(
  { ledger, sessions }: Pick<Backend, 'ledger' | 'sessions'>,
  { chat, messageId, toolCallId }: Approval,
): Promise<void> {
  const turn = await sessions.findTurn(chat, messageId)
  const calls = turn && replayTurn(turn).state.calls
  const id = calls?.get(toolCallId)?.madeBy ?? ''
  const call = calls?.get(id)
  // The response to a call inside an agent is one for that agent, which does not continue.
  if (call?.state !== 'running' || call.madeBy !== undefined) return
  // The ledger has the outcome of an approved call.
  if (await ledger.findByCall(chat, id)) return
  const functionResponse = { id, name: call.toolName, response: { ...UNKNOWN } }
  const content = { role: 'user', parts: [{ functionResponse }] }
  await sessions.append(chat, messageId, { content, notes: {} })
}

/** Records that the conversation shows how a question ended. The call that asked it, or the end of its turn, has shown it. */
export async function endQuestion(
  backend: Pick<Backend, 'ledger' | 'sessions'>,
  approval: Approval,
): Promise<void> {
  const { state, chat, toolCallId } = approval
  if (state.name === 'approved' || state.name === 'requested') return endIfLost(backend, approval)
  await backend.ledger.markReported(chat, [toolCallId])
}
