import type { Chunk } from '../../protocol/chunk.ts'
import type { PartView } from './chat-messages.ts'
import { findApproval, settleApprovals } from './chat-messages.ts'
import { catchUpOnMissed } from './catch-up.ts'
import type { ResponseStateMap } from './response-states.ts'
import { findQueued, sendQueued } from './sync-responses.ts'
import {
  type AttachedStep,
  type Step,
  mark,
  NOTIFY,
  RELOAD,
  resume,
  setMessages,
  withEffects,
  withId,
  withoutId,
  type AttachedSync,
  type ChatView,
  type SyncEffect,
  type SyncEvent,
} from './sync-state.ts'

/** Whether a chunk may change the state. All others, deltas above all, need not be passed to `nextSync`. */
export function isSyncChunk(chunk: Chunk): boolean {
  return chunk.type === 'start' || 'toolCallId' in chunk || isCallData(chunk)
}

function isCallData({ type }: Chunk): boolean {
  return type === 'data-approval' || type === 'data-browser-call'
}

export function onChunk(
  state: AttachedSync,
  { chunk, source, chat }: Extract<SyncEvent, { type: 'chunk' }>,
): Step {
  let next = state
  if (chunk.type === 'start' && source !== 'shown') {
    next = { ...next, writtenMessageId: chunk.messageId }
    if (source === 'requested') next = onOwnTurn(next, chunk.messageId)
  }
  if (chunk.type === 'data-browser-call')
    next = { ...next, offeredCalls: withId(next.offeredCalls, chunk.data.toolCallId) }
  if (chunk.type === 'tool-approval-request')
    next = { ...next, askedApprovals: withId(next.askedApprovals, chunk.approvalId) }
  if ('toolCallId' in chunk && next.unreportedOutputs.has(chunk.toolCallId))
    next = { ...next, unreportedOutputs: withoutId(next.unreportedOutputs, chunk.toolCallId) }
  const effects: SyncEffect[] = source === 'shown' ? [] : showReportedDecision(chunk, chat)
  if (chunk.type === 'tool-input-available' || isCallData(chunk)) effects.push(NOTIFY)
  return [next, effects]
}

/** The feed may have reported the turn before its first chunk arrived. */
function onOwnTurn(state: AttachedSync, messageId: string): AttachedSync {
  if (state.missedTurns.has(messageId))
    return { ...state, missedTurns: withoutId(state.missedTurns, messageId) }
  return state.isFollowing ? { ...state, ownTurns: withId(state.ownTurns, messageId) } : state
}

/** Shows a decision before the chat reads its outcome: the AI SDK does not take it from the outcome. */
function showReportedDecision(chunk: Chunk, { messages }: ChatView): SyncEffect[] {
  if (chunk.type !== 'data-approval') return []
  const { approvalId: id, state, reason } = chunk.data
  if (state !== 'approved' && state !== 'denied') return []
  const decision = { id, approved: state === 'approved', ...(reason !== undefined && { reason }) }
  const isOpen = findApproval(messages, id, 'approval-requested') !== undefined
  return [mark('accepted', id), ...(isOpen ? [{ type: 'show-decision', decision } as const] : [])]
}

export function onIdle(state: AttachedSync, chat: ChatView): Step {
  const next: AttachedSync = { ...state, stream: 'none' }
  switch (state.stream) {
    case 'none':
      return [state, []]
    case 'interrupted':
      return [next, [resume('interrupted')]]
    case 'refused':
      return catchUpOnMissed(next, chat)
    case 'ended':
      return onStreamRead(next, chat)
  }
}

/** The AI SDK has read the chat's own stream. Settles what the stream did not. */
function onStreamRead(state: AttachedSync, chat: ChatView): Step {
  const settled = settleApprovals(chat.messages)
  const effects: SyncEffect[] = settled ? [setMessages(settled)] : []
  effects.push(NOTIFY)
  // What follows sees the messages as they are now.
  const now: ChatView = settled ? { ...chat, messages: settled } : chat
  const next: AttachedSync = state.outcome === 'resumed' ? { ...state, outcome: 'settled' } : state
  const older = now.messages.slice(0, -1)
  // The AI SDK sends the responses of the last message by itself.
  const queued = findQueued(now)
  if (queued && older.includes(queued)) return [next, [...effects, ...sendQueued(now)]]
  // The outcome was reported in a stream that this page did not read.
  if (older.some(({ parts }) => parts.some((part) => isUnreportedDecision(part, now.responses))))
    return withEffects([...effects, RELOAD], catchUpOnMissed(next, now))
  if (!hasUnreported(next, now)) return withEffects(effects, catchUpOnMissed(next, now))
  if (state.outcome === 'resumed')
    return withEffects([...effects, RELOAD], catchUpOnMissed(next, now))
  return withEffects(effects, readOutcome(next, now))
}

/** Reads the outcome of a response that was accepted when its stream was about to end. */
function readOutcome(state: AttachedSync, chat: ChatView): AttachedStep {
  if (chat.isBusy || state.outcome !== 'settled' || !hasUnreported(state, chat)) return [state, []]
  return [{ ...state, outcome: 'resuming' }, [resume('outcome')]]
}

export function onOutcomeRead(state: AttachedSync, chat: ChatView): Step {
  // A stream was read. `chat-idle` follows.
  if (state.stream !== 'none') return [{ ...state, outcome: 'resumed' }, []]
  const next: AttachedSync = { ...state, outcome: 'settled' }
  const isUnknown = hasUnreported(next, chat) && !chat.isBusy
  return withEffects(isUnknown ? [RELOAD] : [], catchUpOnMissed(next, chat))
}

/** Whether a response to the last message was accepted, and no stream has reported its outcome. */
function hasUnreported({ unreportedOutputs }: AttachedSync, chat: ChatView): boolean {
  const isUnreported = (part: PartView): boolean => {
    const { state, toolCallId = '' } = part
    if (state === 'approval-responded') return isUnreportedDecision(part, chat.responses)
    return unreportedOutputs.has(toolCallId) && chat.responses.get(toolCallId) === 'accepted'
  }
  return chat.messages.at(-1)?.parts.some(isUnreported) === true
}

/** Whether the server has accepted the decision of a call whose outcome the message does not show. */
function isUnreportedDecision({ state, approval }: PartView, responses: ResponseStateMap): boolean {
  return state === 'approval-responded' && responses.get(approval?.id ?? '') === 'accepted'
}

/** Records that the server has a response, and reads its outcome if no stream is open. */
export function onAcknowledged(state: AttachedSync, chat: ChatView, id: string): Step {
  const responses = new Map([...chat.responses, [id, 'accepted' as const]])
  return withEffects([mark('accepted', id), NOTIFY], readOutcome(state, { ...chat, responses }))
}
