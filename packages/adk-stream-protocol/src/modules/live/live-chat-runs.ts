import type { Approval } from '../../approvals/approval.ts'
import type { OutputResponse } from '../../protocol/read-responses.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { UntilMet } from '../../turns/chat-events.ts'
import type { OtherTurns } from '../../turns/turn-registry.ts'
import type { Turn } from '../../turns/turn.ts'
import type { LazyBackend } from '../../server/chats/backend.ts'
import { toAppChat } from '../../server/chats/backend.ts'
import type { ChatRuns, LeftResponses, OwnResponses } from '../../server/chats/chat-runs.ts'
import { findStoredCall } from '../../server/chats/host/stored-calls.ts'
import type { LiveLeases } from './live-leases.ts'
import type { LiveOwners } from './live-owners.ts'
import type { LiveRuns } from './live-runs.ts'
import { NOT_STORED } from './live-runs.ts'

interface LiveChatRunsParts {
  readonly backend: LazyBackend
  /** The live sessions of this process. Undefined without the option `live`. */
  readonly runs: LiveRuns | undefined
  readonly owners: LiveOwners
  readonly leases: Pick<LiveLeases, 'end' | 'whileNone'>
  /** The turns of other processes. */
  readonly otherTurns: OtherTurns
  readonly untilMet: UntilMet
  /** A request of this process reads the end of an approval. */
  readonly noteRead: (approval: Approval) => void
}

/** Live sessions, as the core knows them. Other processes may have some, also if this one has none. */
export function toChatRuns(parts: LiveChatRunsParts): ChatRuns {
  const { runs, owners, leases, backend } = parts
  return {
    get size() {
      return runs?.size ?? 0
    },
    isTalking: (chat) => runs?.isTalking(chat) === true,
    leave: async (chat) => runs?.leave(chat) ?? leases.end(toAppChat(await backend.get(), chat)),
    whileNone: async (chat, work) =>
      runs?.whileNone(chat, work) ?? leases.whileNone(toAppChat(await backend.get(), chat), work),
    closeLost: (chat) => runs?.closeLost(chat),
    closeIdle: () => runs?.closeIdle() ?? true,
    close: async () => {
      owners.close()
      await runs?.close()
    },

    keepTurnsOpen: runs !== undefined,
    isOpening: (chat) => runs?.isOpening(chat) === true,
    whenOpened: async (chat) => runs?.whenOpened(chat),
    turnOf: async (chat, messageId) => runs?.find(chat)?.messages.turnOf(messageId),
    hasRunningCalls: (chat, messageId) =>
      runs?.find(chat)?.messages.hasRunningCalls(messageId) === true,
    respond: async (chat, outputs, record) =>
      runs
        ? runs.respond(chat, outputs, record)
        : { decided: await record(), outputs, turn: undefined },
    leaveToOthers: (chat, responses) => leaveToOthers(parts, chat, responses),

    has: (chat) => runs?.find(chat) !== undefined,
    findCall: (chat, toolCallId) => {
      const calls = runs?.find(chat)?.calls
      return calls?.has(toolCallId) ? { messageId: calls.messageOf(toolCallId) } : undefined
    },
    continues: (approval) => owners.holds(approval),
    mayStart: (approval) => owners.mayStart(approval),
    decide: async (approval, decision) =>
      runs?.holds(approval)
        ? runs.find(approval.chat)?.calls?.decide(approval, decision)
        : undefined,
    approvalChanged: (approval) => runs?.approvalChanged(approval) === true,
    leaveCall: async (approval) =>
      runs?.approvalChanged(approval) === true || owners.leave(approval),
    takeOutput: (chat, output) => takeOutput(parts, chat, output),
    get asks() {
      return runs?.asks === true
    },

    get listened() {
      return runs?.listened === true
    },
    hasListeners: (chat) => runs?.hasListeners(chat) === true,
    show: (chat, turn) => runs?.show(chat, turn),
  }
}

async function takeOutput(
  { backend, runs, owners }: LiveChatRunsParts,
  chat: ChatRef,
  output: OutputResponse,
): Promise<boolean> {
  const submitted = runs?.find(chat)?.calls?.submitOutput(output)
  if ((await submitted?.isStored) && submitted?.isTaken) return true
  if (!(await owners.submitOutput(chat, output))) return false
  const { toolCallId } = output
  const opened = await backend.get()
  const found = await findStoredCall(opened, chat, toolCallId)
  if (found?.call.state !== 'waiting') return true
  const call = { chat: toAppChat(opened, chat), messageId: found.messageId, toolCallId }
  if (!(await owners.untilStored(call, output))) throw NOT_STORED
  return true
}

async function leaveToOthers(
  { backend, owners, otherTurns, untilMet, noteRead }: LiveChatRunsParts,
  chat: ChatRef,
  { messageId, taken, outputs }: LeftResponses,
): Promise<OwnResponses> {
  const own: Approval[] = []
  const left: Approval[] = []
  for (const approval of taken) {
    // Before the owner learns of it: its outcome may be stored before the owner has answered.
    noteRead(approval)
    if (await owners.leave(approval)) left.push(approval)
    else own.push(approval)
  }
  const kept: OutputResponse[] = []
  const submitted: OutputResponse[] = []
  for (const output of outputs) {
    if (await owners.submitOutput(chat, output)) submitted.push(output)
    else kept.push(output)
  }
  const follow = async (): Promise<Turn | undefined> => {
    if (left.length + submitted.length === 0) return undefined
    let turn: Turn | undefined
    const isReadable = async (): Promise<boolean> => {
      const running = own.length === 0 ? await otherTurns.open(chat) : undefined
      turn = running?.messageId === messageId ? running : undefined
      return turn !== undefined
    }
    if (await isReadable()) return turn
    const key = toAppChat(await backend.get(), chat)
    for (const output of submitted) {
      const call = { chat: key, messageId, toolCallId: output.toolCallId }
      if (!(await owners.untilStored(call, output))) throw NOT_STORED
    }
    const isShown = async () => (await isReadable()) || owners.areReported(left)
    await untilMet(chat, isShown, { running: left })
    return turn
  }
  return { taken: own, outputs: kept, follow }
}
