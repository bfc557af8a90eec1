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
import { planTurn, type Step } from '../src/live/plan-turn.ts'
import { stepLive } from '../src/live/step-live.ts'
import type { Act } from '../src/mind.ts'
import type { Part } from '../src/wire/content.ts'
import type { ServerMessage } from '../src/wire/live-messages.ts'
import { call, DELIVERY, FLASH_LIVE, NATIVE_AUDIO, say } from './live-lab.ts'

/** Small and good enough: the same seed always plays the same game. */
function createDice(seed: number) {
  let state = seed
  return (sides: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

const FUNCTIONS = [{ name: 'pay' }, { name: 'book', behavior: 'NON_BLOCKING' as const }]

/** One session with its performance, driven by dice instead of sockets. */
class Game {
  readonly sent: ServerMessage[] = []
  readonly callIds: string[] = []
  state: LiveState
  #turn = 0
  #steps: Iterator<Step> | undefined
  readonly #dice: (sides: number) => number

  constructor(seed: number) {
    this.#dice = createDice(seed)
    const model = seed % 2 ? NATIVE_AUDIO : FLASH_LIVE
    const setup = { model, tools: [{ functionDeclarations: FUNCTIONS }] }
    const generationConfig = { responseModalities: ['TEXT'] }
    const config = readConfig({ ...setup, generationConfig }, readLiveOptions({}))
    this.state = createState(setup, config)
  }

  play() {
    const event = this.#pick<() => LiveEvent | undefined>([
      () => this.#perform(),
      () => this.#perform(),
      () => this.#perform(),
      () => this.#answer(),
      () => this.#answer(),
      () => ({ type: 'text', text: 'hello' }),
      () => this.#content(),
      () => ({ type: 'speech-start' }),
      () => ({ type: 'heard', text: 'hi', ms: 500 }),
    ])()
    if (!event) return
    const [state, effects] = stepLive(this.state, event)
    this.state = state
    for (const effect of effects) this.#carryOut(effect)
  }

  #carryOut(effect: Effect) {
    if (effect.type === 'send') this.sent.push(effect.message)
    if (effect.type === 'abandon') this.#steps = undefined
    if (effect.type !== 'perform') return
    this.#turn = effect.turn
    this.#steps = planTurn(this.#acts(), {
      ...DELIVERY,
      isBlocking: (name) => isBlocking(this.state.config, name),
    })
  }

  #acts(): readonly Act[] {
    const make = () =>
      this.#pick<() => Act>([
        () => say('la la'),
        () => say('la'),
        () => this.#call('pay'),
        () => this.#call('book'),
        () => ({ type: 'pause', ms: 1 }),
        () => ({ type: 'cancel' }),
      ])()
    return Array.from({ length: 1 + this.#dice(4) }, make)
  }

  #call(name: string): Act {
    const id = `call-${this.callIds.length}`
    this.callIds.push(id)
    return call(name, { id, separate: this.#dice(3) === 0 })
  }

  #perform(): LiveEvent | undefined {
    const step = this.#steps?.next().value as Step | undefined
    if (!step) return undefined
    const concerns =
      step.type === 'show' ||
      step.type === 'call' ||
      step.type === 'cancel' ||
      step.type === 'complete'
    return concerns ? { type: 'performed', turn: this.#turn, step } : undefined
  }

  #answer(): LiveEvent {
    const responses = Array.from({ length: 1 + this.#dice(2) }, () => ({
      id: this.callIds[this.#dice(this.callIds.length)] ?? 'nobody',
      response: {},
      willContinue: this.#dice(4) === 0,
      scheduling: this.#pick(['INTERRUPT', 'WHEN_IDLE', 'SILENT'] as const),
    }))
    return { type: 'answers', responses }
  }

  #content(): LiveEvent {
    const turns = [{ parts: [{ text: 'typed' }] }]
    return { type: 'content', turns, turnComplete: this.#dice(2) === 0 }
  }

  #pick<T>(choices: readonly T[]): T {
    // The dice have as many sides as there are choices.
    return choices[this.#dice(choices.length)] as T
  }
}

function partsOf(state: LiveState): readonly Part[] {
  return state.history.flatMap((content) => content.parts ?? [])
}

/** Calls that the history knows but that are neither open nor answered, and answers without a call. */
function looseEnds(state: LiveState): readonly string[] {
  const waiting = state.agenda.flatMap(({ contents }) =>
    contents.flatMap(({ parts = [] }) => parts),
  )
  const all = [...partsOf(state), ...waiting]
  const called = all.flatMap((part) => part.functionCall?.id ?? [])
  const answered = new Set(all.flatMap((part) => part.functionResponse?.id ?? []))
  const open = new Set(state.calls.map(({ id }) => id))
  return [
    ...called.filter((id) => !open.has(id) && !answered.has(id)),
    ...[...answered].filter((id) => !called.includes(id)),
    ...[...open].filter((id) => !called.includes(id)),
  ]
}

/** Plays many games and gives what was wrong after a round, with the seed and the round to find it again. */
function findFaults(judge: (game: Game, before: LiveState, fresh: ServerMessage[]) => unknown) {
  const faults: string[] = []
  for (let seed = 0; seed < 40; seed++) {
    const game = new Game(seed)
    for (let round = 0; round < 200; round++) {
      const { state } = game
      const sent = game.sent.length
      game.play()
      const fault = judge(game, state, game.sent.slice(sent))
      if (fault) faults.push(`seed ${seed}, round ${round}: ${JSON.stringify(fault)}`)
    }
  }
  return faults
}

test('[EL57] whatever happens, calls and answers stay paired', () => {
  const faults = findFaults(({ state }) => {
    const ends = looseEnds(state)
    return ends.length > 0 && ends
  })
  expect(faults).toEqual([])
})

test('[EL57] whatever happens, a blocked model is silent', () => {
  let silences = 0
  const faults = findFaults(({ state }, before, fresh) => {
    if (state.turn.state !== 'blocked' || before.turn.state !== 'blocked') return undefined
    silences += 1
    return fresh.find((message) => message.serverContent?.modelTurn)
  })
  expect(faults).toEqual([])
  expect(silences).toBeGreaterThan(100)
})

test('[EL57] whatever happens, an interrupted turn is completed', () => {
  let interruptions = 0
  const faults = findFaults((_game, _before, fresh) => {
    const at = fresh.findIndex((message) => message.serverContent?.interrupted)
    if (at === -1) return undefined
    interruptions += 1
    return !fresh[at + 1]?.serverContent?.turnComplete && fresh
  })
  expect(faults).toEqual([])
  expect(interruptions).toBeGreaterThan(100)
})

test('[EL57] whatever happens, the model is blocked exactly as long as a blocking call is unanswered', () => {
  const faults = findFaults(({ state: { turn, calls } }) => {
    const waits = calls.some(({ blocking, answer }) => blocking && !answer)
    return turn.state === 'blocked' ? !waits && !turn.moreCalls && turn : waits && turn
  })
  expect(faults).toEqual([])
})
