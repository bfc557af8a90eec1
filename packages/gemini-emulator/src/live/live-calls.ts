import type { Content, FunctionResponse, Part } from '../wire/content.ts'
import type {
  Effect,
  LiveState,
  PendingCall,
  QueuedInput,
  StateStep,
  Transition,
  Turn,
} from './live-state.ts'
import { isBlocking, addUsage } from './live-state.ts'

/** Starts calls. After a blocking call the model is silent until every call of the turn has its response. */
export function startCalls(
  state: LiveState,
  step: Extract<StateStep, { type: 'call' }>,
  turn: Exclude<Turn, { state: 'idle' }>,
): Transition {
  const calls = step.groups.flat().map((call): PendingCall => {
    return { call, id: call.id ?? '', blocking: isBlocking(state.config, call.name) }
  })
  const blocked = turn.state === 'blocked' || calls.some((call) => call.blocking)
  const next: LiveState = {
    ...state,
    history: appendParts(
      state.history,
      calls.map(({ call }) => ({ functionCall: call })),
    ),
    calls: [...state.calls, ...calls],
    ...(blocked && {
      turn: {
        state: 'blocked',
        id: turn.id,
        open: true,
        moreCalls: !step.last,
        usage: calls.reduce(
          (usage, { call }) => addUsage(usage, { functionCall: call }),
          turn.usage,
        ),
      },
    }),
  }
  const sends = step.groups.map((functionCalls): Effect => {
    return { type: 'send', message: { toolCall: { functionCalls } } }
  })
  return [unblock(next), sends]
}

interface AddedResponse {
  readonly state: LiveState
  readonly effects: readonly Effect[]
  /** Whether the response interrupts the running turn. */
  readonly interrupts: boolean
}

/** Adds the response of a call. A response to a call that is not pending has no effect. */
export function addResponse(state: LiveState, response: FunctionResponse): AddedResponse {
  const pending = state.calls.find((call) => call.id === response.id && !call.response)
  if (!pending) {
    return { state, effects: [{ type: 'ignore-response', response }], interrupts: false }
  }
  if (pending.blocking) {
    const next = replaceCall(state, pending, { ...pending, response })
    return { state: unblock(next), effects: [{ type: 'send-handle' }], interrupts: false }
  }
  const scheduling = readScheduling(response)
  const interrupts = scheduling === 'INTERRUPT'
  const input: QueuedInput = {
    contents: [{ role: 'user', parts: [{ functionResponse: response }] }],
    needsReply: scheduling !== 'SILENT',
  }
  const next = replaceCall(
    state,
    pending,
    response.willContinue ? { ...pending, hasPartialResponse: true } : undefined,
  )
  const queue = interrupts ? [input, ...next.queue] : [...next.queue, input]
  return { state: { ...next, queue }, effects: [], interrupts }
}

/** Cancels the pending calls that match. Removes calls without any response from the history. */
export function cancelCalls(
  state: LiveState,
  isAffected: (call: PendingCall) => boolean,
): Transition {
  const cancelled = state.calls.filter((call) => !call.response && isAffected(call))
  if (cancelled.length === 0) return [state, []]
  const ids = cancelled.map((call) => call.id)
  const kept = state.calls.filter((call) => !cancelled.includes(call))
  const responded = kept.filter((call) => call.response)
  const removed = cancelled.filter((call) => !call.hasPartialResponse).map((call) => call.id)
  const next: LiveState = {
    ...state,
    history: state.history.map((content) => withoutCalls(content, removed)).filter(hasParts),
    calls: kept.filter((call) => !call.response),
    queue: responded.length > 0 ? [toInput(responded, false), ...state.queue] : state.queue,
  }
  return [next, [{ type: 'send', message: { toolCallCancellation: { ids } } }]]
}

/** Unblocks the model when every blocking call has its response. The responses precede all other queued input. */
function unblock(state: LiveState): LiveState {
  const { turn, calls, queue } = state
  if (turn.state !== 'blocked' || turn.moreCalls) return state
  const blocking = calls.filter((call) => call.blocking)
  if (blocking.some((call) => !call.response)) return state
  return {
    ...state,
    calls: calls.filter((call) => !call.blocking),
    queue: [toInput(blocking, true), ...queue],
    turn: { state: 'idle' },
  }
}

function toInput(calls: readonly PendingCall[], needsReply: boolean): QueuedInput {
  const parts = calls.flatMap(({ response }): Part[] =>
    response ? [{ functionResponse: response }] : [],
  )
  return { contents: [{ role: 'user', parts }], needsReply }
}

function replaceCall(
  state: LiveState,
  old: PendingCall,
  replacement: PendingCall | undefined,
): LiveState {
  const calls = state.calls.flatMap((call) => {
    if (call !== old) return [call]
    return replacement ? [replacement] : []
  })
  return { ...state, calls }
}

// Gemini's guide puts `scheduling` inside the response, its schema beside it. Clients use both.
function readScheduling({ scheduling, response }: FunctionResponse): string {
  if (scheduling) return scheduling
  const inside = response?.['scheduling']
  return typeof inside === 'string' ? inside : 'WHEN_IDLE'
}

/** Appends calls to the content of the turn that made them. */
function appendParts(history: readonly Content[], parts: readonly Part[]): readonly Content[] {
  const last = history.at(-1)
  if (last?.role !== 'model') return [...history, { role: 'model', parts: [...parts] }]
  return [...history.slice(0, -1), { ...last, parts: [...(last.parts ?? []), ...parts] }]
}

function withoutCalls(content: Content, ids: readonly string[]): Content {
  const parts = content.parts ?? []
  const kept = parts.filter((part) => !ids.includes(part.functionCall?.id ?? ''))
  return kept.length === parts.length ? content : { ...content, parts: kept }
}

function hasParts(content: Content): boolean {
  return content.parts === undefined || content.parts.length > 0
}
