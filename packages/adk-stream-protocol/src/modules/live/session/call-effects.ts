import { randomUUID } from 'node:crypto'

import { Context, createEvent } from '@google/adk'

import { describeEnding, describeEndInside, UNDER_WAY } from '../../../agent/call-responses.ts'
import { toEndingNotes } from '../../../agent/events/approval-notes.ts'
import type { DecidedNote } from '../../../agent/events/event-notes.ts'
import { writeNotes } from '../../../agent/events/event-notes.ts'
import type { Approval } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import { previewApproval } from '../../../approvals/policy-previews.ts'
import type { ResolvedTerms } from '../../../approvals/policy.ts'
import { createCallNote, toApprovalEvents, toPauseEvents } from '../../../calls/approval-events.ts'
import { toClaim } from '../../../calls/approved-call.ts'
import { withUserText } from '../../../calls/call-terms.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import { findFollowUp } from '../../../calls/follow-ups.ts'
import { decideUnasked } from '../../../calls/decide-unasked.ts'
import { cancelIfOutdated } from '../../../calls/outdated-calls.ts'
import type { CallEffect } from '../../../calls/next-call.ts'
import { CANCELLED_BY_MODEL, nextCall } from '../../../calls/next-call.ts'
import type { Pause } from '../../../calls/run-state.ts'
import type { LiveSession, OpenCall } from './open-call.ts'
import {
  contextOf,
  reportEndings,
  sendPending,
  sendResult,
  settleCall,
  wasAsked,
  writeEvent,
  writeEventInside,
} from './open-call.ts'
import { resumeFollowUp, runOpenCall, settleFollowUp } from './run-open-call.ts'
import { repeatWhileAway } from './store-away.ts'

/** The record of a call expires this much later than the call, because a run that is still there expires the call itself. */
const POST_RUN_GRACE_MS = 2_000

/** The reason of a cancelled approval. */
const NOT_EXECUTABLE = 'the call could not be carried out'

const REMOVED = 'its message was removed'

/** The result that the model receives then. */
const BROKEN = { error: 'The call could not be carried out.' } as const

/** The result that the model receives if the store fails: the call may have run. */
const UNCERTAIN = {
  error:
    'The server could not store how this call ended. It may or may not have taken effect. Do not repeat it unless the user asks.',
} as const

/** Performs effects of `nextCall`, one after the other: asks people, runs tools, and sends the results to the model. */
export async function performEffects(
  live: LiveSession,
  call: OpenCall,
  effects: readonly CallEffect[],
): Promise<void> {
  for (const effect of effects) await perform(live, call, effect)
}

async function perform(live: LiveSession, call: OpenCall, effect: CallEffect): Promise<void> {
  const { ledger } = live
  switch (effect.type) {
    case 'request':
      return requestApproval(live, call, effect.terms)
    case 'show':
      return showRequest(live, call, effect.approval)
    case 'read':
      return readApproval(live, call, effect.approvalId)
    case 'claim': {
      const approval = await ledger.get(effect.approvalId)
      if (approval) await cancelIfOutdated(ledger, approval, call.tool)
      const claimed = await ledger.claim(effect.approvalId, toClaim(call))
      return isRefusal(claimed)
        ? live.calls.advance(call, {
            type: 'claim-refused',
            approval: await ledger.get(effect.approvalId),
          })
        : live.calls.advance(call, { type: 'claimed', approval: claimed })
    }
    case 'run':
      return effect.approval || findFollowUpId(live, call) === undefined
        ? runOpenCall(live, call, effect.approval)
        : resumeFollowUp(live, call)
    case 'hand-over':
      return handOver(live, call, effect.note)
    case 'pause':
      return pauseCall(live, call, effect.pause, effect.note)
    case 'read-inside':
      return resumeIfDecided(live, call)
    case 'withdraw-inside':
      return withdrawInside(live, call, CANCELLED_BY_MODEL)
    case 'end-inside':
      return findFollowUpId(live, call) === undefined
        ? endInside(live, call)
        : resumeFollowUp(live, call)
    case 'settle-with-output': {
      // LV14: while this process did not respond, another one may have taken the output.
      const isAnswered = () => live.session.isAnswered(call.id)
      if (await repeatWhileAway(isAnswered, () => live.calls.isOpen(call))) {
        live.calls.remove(call)
        return live.onLost()
      }
      const response = asClientTool(call.tool)?.toResponse(effect.output.result) ?? BROKEN
      return settleCall(live, call, response, { isOutput: true })
    }
    case 'settle':
      return settleCall(live, call, effect.response, { note: effect.note })
    case 'withdraw':
      await ledger.cancel(effect.approvalId, CANCELLED_BY_MODEL)
      return
    case 'leave':
      return live.calls.remove(call)
    case 'lose':
      live.onLeft([call.id, ...call.inside], call.loss)
      live.calls.remove(call)
      return live.onLost()
    case 'recover':
      return recover(live, call)
  }
}

/** TU1981: after the session has closed, cancels what a call has requested whose message was removed meanwhile. Never rejects. */
export async function cancelIfRemoved(live: LiveSession, call: OpenCall): Promise<void> {
  const { chat, ledger, session, onError } = live
  try {
    if (await session.holdsCalls([call.id])) return
    for (const id of [call.id, ...call.inside]) {
      const approval = await ledger.findByCall(chat, id)
      if (approval) await ledger.cancel(approval.id, REMOVED)
    }
  } catch (error) {
    onError(error)
  }
}

/** LV881: continues a call that waits as its approval says, when the store works. The model is told nothing meanwhile. */
async function readApproval(live: LiveSession, call: OpenCall, approvalId: string): Promise<void> {
  const { ledger, calls } = live
  const read = async (): Promise<Approval | undefined> => {
    await ledger.releaseClaim(approvalId)
    return ledger.get(approvalId)
  }
  const approval = await repeatWhileAway(read, () => calls.isOpen(call))
  if (approval) calls.apply(call, { type: 'approval-changed', approval })
}

async function requestApproval(
  live: LiveSession,
  call: OpenCall,
  { deadlineMs, ...terms }: ResolvedTerms,
): Promise<void> {
  const messageId = live.messages.messageIdOf(call.id)
  const context = contextOf(call)
  const { session } = context
  const resolved = { ...terms, deadlineMs }
  const options = { ...live.terms, ledger: live.ledger }
  const unasked = await decideUnasked(call, { messageId, terms: resolved, session }, options)
  if (unasked) {
    const { approval, note } = unasked
    await writeEvent(live, call.id, createCallNote(context, { unasked: [note], messageId }))
    return live.calls.advance(call, { type: 'request-stored', approval })
  }
  const requested = await live.ledger.request({
    // The same form as the ids of ADK's confirmations.
    id: `adk-${randomUUID()}`,
    ...toClaim(call),
    messageId,
    terms: withUserText(terms, session.events, messageId),
    deadlineMs,
    isAwaited: true,
  })
  await live.calls.advance(
    call,
    isRefusal(requested)
      ? { type: 'request-refused', refusal: requested }
      : { type: 'request-stored', approval: requested },
  )
}

async function showRequest(live: LiveSession, call: OpenCall, approval: Approval): Promise<void> {
  const { terms } = live
  const made = await previewApproval(approval, approval.chat.principalId, terms)
  for (const event of toApprovalEvents(approval, made, contextOf(call)))
    await writeEvent(live, call.id, event)
  call.approvalId = approval.id
  sendPending(live, call)
  const [state, effects] = nextCall(call.state, {
    type: 'request-shown',
    approvalId: approval.id,
  })
  call.state = state
  live.onStateChange(call.id, 'waiting')
  await performEffects(live, call, effects)
}

/** Stores that a call waits for approvals inside the agent that it runs. */
async function pauseCall(
  live: LiveSession,
  call: OpenCall,
  pause: Pause,
  note: DecidedNote | undefined,
): Promise<void> {
  const { id, tool, toolArgs: args, toolContext } = call
  const confirmationId = `adk-${randomUUID()}`
  const paused = { ...pause, toolCallId: id, confirmationId, ...(note && { decided: note }) }
  const shown = { name: tool.name, args, messageId: live.messages.messageIdOf(id) }
  const [placeholder, request] = toPauseEvents(paused, shown, contextOf(call))
  const { stateDelta, artifactDelta } = toolContext.actions
  Object.assign(placeholder.actions, { stateDelta, artifactDelta })
  await writeEvent(live, id, placeholder)
  await writeEvent(live, id, request)
  await reportEndings(live, call, note)
  if (!call.pause && !note) sendPending(live, call)
  call.pause = pause
  const invocationContext = contextOf(call)
  call.toolContext = new Context({ invocationContext, functionCallId: id })
  const [state, effects] = nextCall(call.state, { type: 'pause-shown' })
  call.state = state
  // A message whose call continues at once does not pause.
  const inside = await readInside(live, pause)
  if (call.state !== state || live.calls.isClosed) return
  if (inside === 'decided') return live.calls.advance(call, { type: 'inside-decided' })
  live.onStateChange(id, 'waiting')
  await performEffects(live, call, effects)
}

/** Continues a call when a call inside its agent was decided. */
export async function resumeIfDecided(live: LiveSession, call: OpenCall): Promise<void> {
  const { pause, state } = call
  if (state.name !== 'paused' || !state.isWaiting || !pause) return
  const inside = await readInside(live, pause)
  if (inside !== 'waiting' && call.pause === pause && !live.calls.isClosed)
    live.calls.apply(call, { type: `inside-${inside}` })
}

/** Settles a call whose agent cannot continue, and the calls inside it. */
async function endInside(
  live: LiveSession,
  call: OpenCall,
  reason = CANCELLED_BY_MODEL,
): Promise<void> {
  const { ledger } = live
  const { asked, session } = call.pause ?? { session: '', asked: [] }
  await withdrawInside(live, call, reason)
  await live.onCancelled(live.chat, asked)
  const messageId = live.messages.messageIdOf(call.id)
  const { invocationId, agent } = contextOf(call)
  let response: { readonly error: string } | undefined
  for (const { approvalId, toolCallId: id, toolName: name } of asked) {
    const approval = await ledger.get(approvalId)
    const ending = approval && describeEnding(approval)
    if (!ending) continue
    response ??= describeEndInside(name, ending.response)
    const ended = { id, name, response: ending.response }
    await writeEventInside(
      live,
      call.id,
      createEvent({
        invocationId,
        ...(agent && { author: agent.name }),
        customMetadata: writeNotes({ messageId, ...toEndingNotes(session, ended, ending.note) }),
      }),
    )
  }
  call.endings.push(...asked.map(({ toolCallId }) => toolCallId))
  await settleCall(live, call, response ?? BROKEN)
}

/** Cancels the approvals inside the agent that a call runs. An earlier decision wins. */
async function withdrawInside(
  { ledger }: LiveSession,
  { pause }: OpenCall,
  reason: string,
): Promise<void> {
  for (const { approvalId } of pause?.asked ?? []) await ledger.cancel(approvalId, reason)
}

/** `decided`: the agent can continue. `cancelled`: it cannot, because nothing that it waits for was decided. */
type InsideState = 'waiting' | 'decided' | 'cancelled'

/** Returns the state of the approvals that an agent waits for. */
async function readInside({ ledger }: LiveSession, { asked }: Pause): Promise<InsideState> {
  const approvals = await Promise.all(asked.map(({ approvalId }) => ledger.get(approvalId)))
  const states = approvals.flatMap((approval) => approval?.state.name ?? 'cancelled')
  const ended = states.filter((state) => state !== 'requested')
  if (ended.length === 0) return 'waiting'
  return ended.every((state) => state === 'cancelled') ? 'cancelled' : 'decided'
}

/** Hands the call to the client, which runs its tool. */
async function handOver(
  live: LiveSession,
  call: OpenCall,
  note: DecidedNote | undefined,
): Promise<void> {
  const { timeoutMs } = asClientTool(call.tool) ?? {}
  if (timeoutMs === undefined) return
  const messageId = live.messages.messageIdOf(call.id)
  const context = contextOf(call)
  const ids = [call.id]
  const hasOutput = call.state.name === 'delivered' && call.state.output !== undefined
  const isAwaited = !hasOutput || call.state.isCancelled
  const notes = { ...(isAwaited && { offered: ids }), messageId }
  const event = createCallNote(
    context,
    note ? { handedOver: ids, ...notes } : { checked: ids, ...notes },
  )
  // BT1580: the ledger cannot say that the call was handed over, so every step is repeated until it is stored.
  const repeat = <Result>(step: () => Promise<Result>) =>
    repeatWhileAway(step, () => live.calls.isOpen(call))
  await repeat(() => (note ? writeEvent : writeEventInside)(live, call.id, event))
  const expiresAt = (await repeat(() => live.ledger.now())) + timeoutMs
  const handedOver = { chat: live.chat, messageId, toolCallId: call.id }
  await repeat(() => live.onHandedOver(handedOver, timeoutMs + POST_RUN_GRACE_MS))
  if (live.calls.isClosed) return
  startTimer(live, call, { expiresAt, timeoutMs })
  if (isAwaited) live.onStateChange(call.id, 'waiting')
  live.calls.apply(call, { type: 'handed-over' })
}

/** Continues the timer of a call that another process has handed over. Its clock may differ, that of the database does not. */
export async function continueTimer(
  live: LiveSession,
  call: OpenCall,
  expiresAt: number,
): Promise<void> {
  call.isFollowed = true
  call.expiresAt = expiresAt
  const timeoutMs = expiresAt - (await live.ledger.now())
  if (live.calls.isOpen(call) && !live.calls.isClosed)
    startTimer(live, call, { expiresAt, timeoutMs })
}

/** Expires a call that waits for the client that runs it. */
function startTimer(
  live: LiveSession,
  call: OpenCall,
  { expiresAt, timeoutMs }: { readonly expiresAt: number; readonly timeoutMs: number },
): void {
  call.isFollowed = true
  call.expiresAt = expiresAt
  call.timer = setTimeout(() => {
    expireHandedOver(live, call).catch((error: unknown) => live.onError(error))
  }, timeoutMs)
}

/** Ends a call that was handed over without output. If another process took the output, it has continued the conversation, and the call ends here. */
async function expireHandedOver(live: LiveSession, call: OpenCall): Promise<void> {
  const isCurrent = await live.session.isCurrent()
  if (!live.calls.isOpen(call)) return
  if (!isCurrent) return live.calls.remove(call)
  const { timedOut: result } = asClientTool(call.tool) ?? {}
  if (result)
    live.calls.apply(call, { type: 'output-received', output: { toolCallId: call.id, result } })
}

/** Ends a call whose work failed. Settles it, unless another process has taken the session over, or a sweep continues the call. */
async function recover(live: LiveSession, call: OpenCall): Promise<void> {
  clearTimeout(call.timer)
  const ids = [call.id, ...call.inside]
  const settle = async (): Promise<'left' | 'settled'> => {
    if (!(await live.ledger.locks.stillHolds(live.chat))) {
      live.calls.remove(call)
      live.onLost()
      return 'settled'
    }
    // LV881: the person has approved it, and it has not started.
    if ((await isAnyApproved(live, ids)) && live.onLeft(ids, call.loss)) return 'left'
    await settleFailed(live, call)
    return 'settled'
  }
  const isNeeded = (): boolean => live.calls.isOpen(call) && !live.calls.isClosed
  try {
    // LV881: the model is told nothing while the ledger cannot be read.
    const end = wasAsked(call) ? repeatWhileAway(settle, isNeeded) : settle()
    if ((await end) === 'settled') return
  } catch (error) {
    live.onError(error)
    live.onLeft(ids, error)
  }
  if (live.calls.isClosed) return
  if (!call.state.isCancelled) sendResult(live, call, wasAsked(call) ? UNCERTAIN : BROKEN)
  live.calls.remove(call)
}

/** Whether any of these calls is approved and has not started. */
async function isAnyApproved({ chat, ledger }: LiveSession, ids: readonly string[]) {
  const approvals = await Promise.all(ids.map((id) => ledger.findByCall(chat, id)))
  return approvals.some((approval) => approval?.state.name === 'approved')
}

/** Settles a call whose work failed: with the outcome in the ledger if there is one, else as not executable. */
async function settleFailed(live: LiveSession, call: OpenCall): Promise<void> {
  const followUpId = findFollowUpId(live, call)
  if (followUpId !== undefined) {
    const question = await cancelApproval(live, followUpId)
    const asked = question && (await findFollowUp(call, live))
    const ending = question && describeEnding(question)
    if (asked && ending) return settleFollowUp(live, call, { ...asked, question }, ending)
  } else if (call.inside.size > 0) return endInside(live, call, NOT_EXECUTABLE)
  const approval = await cancelApproval(live, call.id)
  const ending = approval && describeEnding(approval)
  const { state } = approval ?? {}
  // BT1580: the result of a call that was handed over is not in the ledger.
  const isOpen = call.tool.isLongRunning && state?.name === 'succeeded' && state.output === null
  const open = asClientTool(call.tool) ? BROKEN : UNDER_WAY
  const response = (isOpen ? open : ending?.response) ?? BROKEN
  await settleCall(live, call, response, { note: ending?.note })
}

/** Cancels the approval of a call whose work failed. Returns the approval in its new state. */
async function cancelApproval(
  { chat, ledger }: LiveSession,
  toolCallId: string,
): Promise<Approval | undefined> {
  const { id } = (await ledger.findByCall(chat, toolCallId)) ?? {}
  if (id === undefined) return undefined
  // LG82: the call has run, and its outcome could not be stored when it ended.
  await ledger.recordFinished()
  ledger.abandon(id)
  await ledger.cancel(id, NOT_EXECUTABLE)
  const approval = await ledger.get(id)
  // The call may have taken effect, but its outcome could not be recorded.
  return approval?.state.name === 'executing'
    ? { ...approval, state: { ...approval.state, name: 'unknown' } }
    : approval
}

/** Returns the id of the question that a call has asked after it was approved. */
function findFollowUpId({ kinds }: LiveSession, { id, inside }: OpenCall): string | undefined {
  return kinds.toFollowUpIds(id).find((followUpId) => inside.has(followUpId))
}
