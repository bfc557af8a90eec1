import type { Content, FunctionResponse, Part } from '../wire/content.ts'
import {
  isBlocking,
  type Effect,
  type Item,
  type LiveState,
  type OpenCall,
  type Stepped,
  type Turn,
} from './live-state.ts'
import { spend } from './live-usage.ts'
import type { Step } from './plan-turn.ts'

/** Calls functions: blocking ones silence the model until each is answered, the others run beside the conversation. */
export function makeCalls(
  state: LiveState,
  step: Extract<Step, { type: 'call' }>,
  turn: Exclude<Turn, { state: 'idle' }>,
): Stepped {
  const calls = step.groups.flat().map((call): OpenCall => {
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
        spent: calls.reduce((spent, { call }) => spend(spent, { functionCall: call }), turn.spent),
      },
    }),
  }
  const sends = step.groups.map((functionCalls): Effect => {
    return { type: 'send', message: { toolCall: { functionCalls } } }
  })
  return [unblock(next), sends]
}

interface Answered {
  readonly state: LiveState
  readonly effects: readonly Effect[]
  /** Whether the answer wants to be spoken about at once. */
  readonly interrupt: boolean
}

/** Takes one answer. Late ones, to calls that were cancelled or never made, are ordinary traffic: they change nothing. */
export function answerCalls(state: LiveState, response: FunctionResponse): Answered {
  const open = state.calls.find((call) => call.id === response.id && !call.answer)
  if (!open) return { state, effects: [{ type: 'ignore', response }], interrupt: false }
  if (open.blocking) {
    const answered = replaceCall(state, open, { ...open, answer: response })
    return { state: unblock(answered), effects: [{ type: 'checkpoint' }], interrupt: false }
  }
  const scheduling = readScheduling(response)
  const interrupt = scheduling === 'INTERRUPT'
  const item: Item = {
    contents: [{ role: 'user', parts: [{ functionResponse: response }] }],
    speak: scheduling !== 'SILENT',
  }
  const rest = replaceCall(
    state,
    open,
    response.willContinue ? { ...open, begun: true } : undefined,
  )
  const agenda = interrupt ? [item, ...rest.agenda] : [...rest.agenda, item]
  return { state: { ...rest, agenda }, effects: [], interrupt }
}

/** Takes unanswered calls back: the client is told, and the history forgets those of which nothing came. */
export function takeBackCalls(state: LiveState, concerns: (call: OpenCall) => boolean): Stepped {
  const taken = state.calls.filter((call) => !call.answer && concerns(call))
  if (taken.length === 0) return [state, []]
  const ids = taken.map((call) => call.id)
  const kept = state.calls.filter((call) => !taken.includes(call))
  const answers = kept.filter((call) => call.answer)
  const vain = taken.filter((call) => !call.begun).map((call) => call.id)
  const next: LiveState = {
    ...state,
    history: state.history.map((content) => withoutCalls(content, vain)).filter(hasParts),
    calls: kept.filter((call) => !call.answer),
    agenda: answers.length > 0 ? [answerItem(answers, false), ...state.agenda] : state.agenda,
  }
  return [next, [{ type: 'send', message: { toolCallCancellation: { ids } } }]]
}

/** Frees the model once every blocking call is answered; the answers come before anything that was said meanwhile. */
function unblock(state: LiveState): LiveState {
  const { turn, calls, agenda } = state
  if (turn.state !== 'blocked' || turn.moreCalls) return state
  const blocking = calls.filter((call) => call.blocking)
  if (blocking.some((call) => !call.answer)) return state
  return {
    ...state,
    calls: calls.filter((call) => !call.blocking),
    agenda: [answerItem(blocking, true), ...agenda],
    turn: { state: 'idle' },
  }
}

function answerItem(calls: readonly OpenCall[], speak: boolean): Item {
  const parts = calls.flatMap(({ answer }): Part[] =>
    answer ? [{ functionResponse: answer }] : [],
  )
  return { contents: [{ role: 'user', parts }], speak }
}

function replaceCall(state: LiveState, old: OpenCall, by: OpenCall | undefined): LiveState {
  const calls = state.calls.flatMap((call) => {
    if (call !== old) return [call]
    return by ? [by] : []
  })
  return { ...state, calls }
}

// Gemini's guide puts `scheduling` inside the response, its schema beside it; both are in use.
function readScheduling({ scheduling, response }: FunctionResponse): string {
  if (scheduling) return scheduling
  const inside = response?.['scheduling']
  return typeof inside === 'string' ? inside : 'WHEN_IDLE'
}

/** Calls belong to the turn that made them, as one content with what was said before. */
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
