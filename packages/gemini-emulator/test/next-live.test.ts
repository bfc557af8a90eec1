import { expect, test } from 'vitest'

import { readLiveOptions } from '../src/live/live-options.ts'
import {
  createState,
  isBlocking,
  readConfig,
  type Effect,
  type LiveEvent,
  type LiveState,
} from '../src/live/live-state.ts'
import { nextLive } from '../src/live/next-live.ts'
import { planTurn, type TurnStep } from '../src/live/plan-turn.ts'
import type { Action } from '../src/responders/responder.ts'
import type { Part } from '../src/wire/content.ts'
import type { ServerMessage } from '../src/wire/live-messages.ts'
import { call, TURN_SETTINGS, FLASH_LIVE, NATIVE_AUDIO, say } from './support/live-server.ts'

/** Creates a pseudo-random generator. The same seed gives the same numbers. */
function createRandom(seed: number) {
  let state = seed
  return (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

const FUNCTIONS = [{ name: 'pay' }, { name: 'book', behavior: 'NON_BLOCKING' as const }]

/** Runs one session with random events. */
class RandomSession {
  readonly sent: ServerMessage[] = []
  readonly callIds: string[] = []
  state: LiveState
  #turn = 0
  #steps: Iterator<TurnStep> | undefined
  readonly #random: (limit: number) => number

  constructor(seed: number) {
    this.#random = createRandom(seed)
    const model = seed % 2 ? NATIVE_AUDIO : FLASH_LIVE
    const setup = { model, tools: [{ functionDeclarations: FUNCTIONS }] }
    const generationConfig = { responseModalities: ['TEXT'] }
    const config = readConfig({ ...setup, generationConfig }, readLiveOptions({}))
    this.state = createState(setup, config)
  }

  next() {
    const event = this.#pick<() => LiveEvent | undefined>([
      () => this.#advanceTurn(),
      () => this.#advanceTurn(),
      () => this.#advanceTurn(),
      () => this.#respond(),
      () => this.#respond(),
      () => ({ type: 'text', text: 'hello' }),
      () => this.#content(),
      () => ({ type: 'speech-start' }),
      () => ({ type: 'transcript', text: 'hi', ms: 500 }),
    ])()
    if (!event) return
    const [state, effects] = nextLive(this.state, event)
    this.state = state
    for (const effect of effects) this.#run(effect)
  }

  #run(effect: Effect) {
    if (effect.type === 'send') this.sent.push(effect.message)
    if (effect.type === 'abort-turn') this.#steps = undefined
    if (effect.type !== 'start-turn') return
    this.#turn = effect.turn
    this.#steps = planTurn(this.#actions(), {
      ...TURN_SETTINGS,
      isBlocking: (name) => isBlocking(this.state.config, name),
    })
  }

  #actions(): readonly Action[] {
    const make = () =>
      this.#pick<() => Action>([
        () => say('la la'),
        () => say('la'),
        () => this.#call('pay'),
        () => this.#call('book'),
        () => ({ type: 'pause', ms: 1 }),
        () => ({ type: 'cancel' }),
      ])()
    return Array.from({ length: 1 + this.#random(4) }, make)
  }

  #call(name: string): Action {
    const id = `call-${this.callIds.length}`
    this.callIds.push(id)
    return call(name, { id, separate: this.#random(3) === 0 })
  }

  #advanceTurn(): LiveEvent | undefined {
    const step = this.#steps?.next().value as TurnStep | undefined
    if (!step) return undefined
    const changesState =
      step.type === 'content' ||
      step.type === 'call' ||
      step.type === 'cancel' ||
      step.type === 'complete'
    return changesState ? { type: 'turn-step', turn: this.#turn, step } : undefined
  }

  #respond(): LiveEvent {
    const responses = Array.from({ length: 1 + this.#random(2) }, () => ({
      id: this.callIds[this.#random(this.callIds.length)] ?? 'unknown',
      response: {},
      willContinue: this.#random(4) === 0,
      scheduling: this.#pick(['INTERRUPT', 'WHEN_IDLE', 'SILENT'] as const),
    }))
    return { type: 'tool-responses', responses }
  }

  #content(): LiveEvent {
    const turns = [{ parts: [{ text: 'typed' }] }]
    return { type: 'content', turns, turnComplete: this.#random(2) === 0 }
  }

  #pick<T>(choices: readonly T[]): T {
    // The index is below the number of choices.
    return choices[this.#random(choices.length)] as T
  }
}

function partsOf(state: LiveState): readonly Part[] {
  return state.history.flatMap((content) => content.parts ?? [])
}

/** Returns the ids of calls without a response that are not pending, and of responses without a call. */
function findUnpaired(state: LiveState): readonly string[] {
  const queued = state.queue.flatMap(({ contents }) => contents.flatMap(({ parts = [] }) => parts))
  const all = [...partsOf(state), ...queued]
  const called = all.flatMap((part) => part.functionCall?.id ?? [])
  const responded = new Set(all.flatMap((part) => part.functionResponse?.id ?? []))
  const pending = new Set(state.calls.map(({ id }) => id))
  return [
    ...called.filter((id) => !pending.has(id) && !responded.has(id)),
    ...[...responded].filter((id) => !called.includes(id)),
    ...[...pending].filter((id) => !called.includes(id)),
  ]
}

/** Runs many sessions and returns each violation with its seed and round. */
function findViolations(
  check: (session: RandomSession, before: LiveState, sent: ServerMessage[]) => unknown,
) {
  const violations: string[] = []
  for (let seed = 0; seed < 40; seed++) {
    const session = new RandomSession(seed)
    for (let round = 0; round < 200; round++) {
      const { state } = session
      const sentBefore = session.sent.length
      session.next()
      const violation = check(session, state, session.sent.slice(sentBefore))
      if (violation) {
        violations.push(`seed ${seed}, round ${round}: ${JSON.stringify(violation)}`)
      }
    }
  }
  return violations
}

test('[EL57] after any events, calls and responses are paired', () => {
  const violations = findViolations(({ state }) => {
    const unpaired = findUnpaired(state)
    return unpaired.length > 0 && unpaired
  })
  expect(violations).toEqual([])
})

test('[EL57] after any events, a blocked model is silent', () => {
  let silences = 0
  const violations = findViolations(({ state }, before, sent) => {
    if (state.turn.state !== 'blocked' || before.turn.state !== 'blocked') return undefined
    silences += 1
    return sent.find((message) => message.serverContent?.modelTurn)
  })
  expect(violations).toEqual([])
  expect(silences).toBeGreaterThan(100)
})

test('[EL57] after any events, an interrupted turn is completed', () => {
  let interruptions = 0
  const violations = findViolations((_session, _before, sent) => {
    const at = sent.findIndex((message) => message.serverContent?.interrupted)
    if (at === -1) return undefined
    interruptions += 1
    return !sent[at + 1]?.serverContent?.turnComplete && sent
  })
  expect(violations).toEqual([])
  expect(interruptions).toBeGreaterThan(100)
})

test('[EL57] after any events, the model is blocked exactly while a blocking call is pending', () => {
  const violations = findViolations(({ state: { turn, calls } }) => {
    const isPending = calls.some(({ blocking, response }) => blocking && !response)
    return turn.state === 'blocked' ? !isPending && !turn.moreCalls && turn : isPending && turn
  })
  expect(violations).toEqual([])
})
