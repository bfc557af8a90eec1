import type { Content, FunctionResponse, Part } from '../wire/content.ts'
import type { ServerContent } from '../wire/live-messages.ts'
import { splitPieces } from '../wire/pieces.ts'
import { answerCalls, makeCalls, takeBackCalls } from './live-calls.ts'
import type { Effect, Item, LiveEvent, LiveState, Performed, Stepped } from './live-state.ts'
import { countUsage, NOTHING_SPENT, spend } from './live-usage.ts'

/** Takes the conversation one event further: pure, so the same events always give the same frames. */
export function stepLive(state: LiveState, event: LiveEvent): Stepped {
  switch (event.type) {
    case 'content':
      return takeContent(state, event.turns, event.turnComplete)
    case 'text':
      return takeInput(state, event.text)
    case 'video':
      return [{ ...state, seen: event.frame }, []]
    case 'speech-start':
      return bargeIn(state)
    case 'heard':
      return takeSpeech(state, event.text, event.ms)
    case 'answers':
      return takeAnswers(state, event.responses)
    case 'performed':
      return takePerformed(state, event.turn, event.step)
  }
}

/** Lets the model take up what waits for it, if it is free. */
export function proceed(state: LiveState): Stepped {
  const { agenda, history, turn } = state
  if (turn.state !== 'idle' || agenda.length === 0) return [state, []]
  const question = agenda.findIndex((item) => item.speak)
  const count = question === -1 ? agenda.length : question + 1
  const next = {
    ...state,
    history: [...history, ...agenda.slice(0, count).flatMap((item) => item.contents)],
    agenda: agenda.slice(count),
  }
  if (question === -1) return [next, [{ type: 'checkpoint' }]]
  const id = state.turnCount + 1
  return [
    { ...next, turnCount: id, turn: { state: 'speaking', id, said: [], spent: NOTHING_SPENT } },
    [{ type: 'perform', turn: id }],
  ]
}

function takeContent(state: LiveState, turns: readonly Content[], turnComplete: boolean): Stepped {
  const contents = turns.map((turn) => ({ ...turn, role: turn.role ?? 'user' }))
  if (state.seeding) {
    return [
      { ...state, history: [...state.history, ...contents], seeding: !turnComplete },
      [{ type: 'checkpoint' }],
    ]
  }
  return chain(hush(state), enqueue({ contents, speak: turnComplete }), proceed)
}

/** What the person wrote or said, with what the camera saw last. */
function takeInput(state: LiveState, text: string): Stepped {
  const parts: Part[] = state.seen ? [{ inlineData: state.seen }, { text }] : [{ text }]
  const item: Item = { contents: [{ role: 'user', parts }], speak: true }
  const quiet: Stepped = state.config.bargeIn ? hush(state) : [state, []]
  return chain(quiet, enqueue(item), (next) => proceed({ ...next, seen: undefined }))
}

function takeSpeech(state: LiveState, text: string, ms: number): Stepped {
  const heard = { ...state, heardMs: state.heardMs + ms }
  if (text === '') return [heard, []]
  const pieces = state.config.inputTranscription ? splitPieces(text) : []
  const transcript = pieces.map((piece) => show({ inputTranscription: { text: piece } }))
  return chain([heard, transcript], (next) => takeInput(next, text))
}

function bargeIn(state: LiveState): Stepped {
  const { config, turn } = state
  if (!config.bargeIn) return [state, []]
  if (turn.state === 'speaking') return hush(state)
  if (turn.state === 'idle' || !config.cancelOnBargeIn) return [state, []]
  const [freed, cancellation] = takeBackCalls(state, (call) => call.blocking)
  // What was typed meanwhile stays on the agenda: the person is speaking now.
  return chain([freed, [{ type: 'abandon' }, ...cancellation]], (next) =>
    endOpenTurn(next, { interrupted: true }),
  )
}

/** Interrupts the model in mid-speech; it remembers what it got to say. */
function hush(state: LiveState): Stepped {
  if (state.turn.state !== 'speaking') return [state, []]
  return [
    { ...remember(state), turn: { state: 'idle' } },
    [{ type: 'abandon' }, show({ interrupted: true }), complete(state, {}), { type: 'checkpoint' }],
  ]
}

function takeAnswers(state: LiveState, responses: readonly FunctionResponse[]): Stepped {
  let stepped: Stepped = [state, []]
  for (const response of responses) {
    stepped = chain(stepped, (next) => {
      const { state: answered, effects, interrupt } = answerCalls(next, response)
      return chain([answered, effects], interrupt ? hush : stay)
    })
  }
  return chain(stepped, proceed)
}

function takePerformed(state: LiveState, turnId: number, step: Performed): Stepped {
  const { turn } = state
  // A turn that was interrupted may still report a step or two.
  if (turn.state === 'idle' || turn.id !== turnId) return [state, []]
  switch (step.type) {
    case 'show':
      return takeShown(state, step)
    case 'call':
      return chain(makeCalls(remember(state), step, turn), settleCalls, proceed)
    case 'cancel': {
      const taken = takeBackCalls(state, () => true)
      return chain(taken, (next) => endOpenTurn(next, {}), proceed)
    }
    case 'complete': {
      const reason = step.reason === undefined ? {} : { turnCompleteReason: step.reason }
      const done: LiveState = { ...remember(state), turn: { state: 'idle' } }
      return chain([done, [complete(state, reason), { type: 'checkpoint' }]], proceed)
    }
  }
}

function takeShown(state: LiveState, step: Extract<Performed, { type: 'show' }>): Stepped {
  const { turn } = state
  if (turn.state !== 'speaking') return [state, []]
  const said = step.said ? addPart(turn.said, step.said) : turn.said
  const spent = spend(turn.spent, step.said, step.samples ?? 0)
  const effects = Object.keys(step.content).length > 0 ? [show(step.content)] : []
  return [{ ...state, turn: { ...turn, said, spent } }, effects]
}

/** Completes a turn on the wire that ended in calls, where the model does so at once. */
function settleCalls(state: LiveState): Stepped {
  const { turn, config } = state
  if (turn.state !== 'blocked' || turn.moreCalls) return [state, []]
  const checkpoint: Effect = { type: 'checkpoint' }
  if (!turn.open || !config.completeToolTurns) return [state, [checkpoint]]
  return [{ ...state, turn: { ...turn, open: false } }, [complete(state, {}), checkpoint]]
}

/** The calls of a blocked turn are gone; the turn ends, on the wire too if it was still open there. */
function endOpenTurn(
  state: LiveState,
  { interrupted }: Pick<ServerContent, 'interrupted'>,
): Stepped {
  const { turn } = state
  if (turn.state !== 'blocked') return [state, []]
  const closing = turn.open ? [complete(state, {})] : []
  return [
    { ...state, turn: { state: 'idle' } },
    [
      ...(turn.open && interrupted ? [show({ interrupted })] : []),
      ...closing,
      { type: 'checkpoint' },
    ],
  ]
}

/** Moves what was said in the turn so far into the history. */
function remember(state: LiveState): LiveState {
  const { turn, history } = state
  if (turn.state !== 'speaking' || turn.said.length === 0) return state
  const said: Content = { role: 'model', parts: [...turn.said] }
  return { ...state, turn: { ...turn, said: [] }, history: [...history, said] }
}

/** Pieces of text become one part; thoughts are not kept. */
function addPart(said: readonly Part[], part: Part): readonly Part[] {
  if (part.thought) return said
  const last = said.at(-1)
  if (part.text === undefined || last?.text === undefined) return [...said, part]
  return [...said.slice(0, -1), { text: last.text + part.text }]
}

function show(serverContent: ServerContent): Effect {
  return { type: 'send', message: { serverContent } }
}

function complete(state: LiveState, reason: Pick<ServerContent, 'turnCompleteReason'>): Effect {
  const serverContent = { turnComplete: true as const, ...reason }
  return { type: 'send', message: { serverContent, usageMetadata: countUsage(state) } }
}

function enqueue(item: Item): (state: LiveState) => Stepped {
  return (state) => [{ ...state, agenda: [...state.agenda, item] }, []]
}

const stay = (state: LiveState): Stepped => [state, []]

/** Goes on from a step and gathers the effects. */
function chain(first: Stepped, ...others: ((state: LiveState) => Stepped)[]): Stepped {
  let [state, effects] = first
  for (const step of others) {
    const [next, more] = step(state)
    state = next
    effects = [...effects, ...more]
  }
  return [state, effects]
}
