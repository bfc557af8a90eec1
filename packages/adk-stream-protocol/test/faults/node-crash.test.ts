import { expect } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import type { StepProgress } from '../../src/protocol/message.ts'
import { type ChatMessage, textOf, toolParts } from '../support/chat-probe.ts'
import { leaveOutRepeated, openCrashPair, POLLING } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { type Asked, Person, readEffects } from './support/person.ts'

/** How often each node and tool has had its effect in the end, and what the workflow has replied. */
interface End {
  readonly effects: string
  readonly reply: string
}

const ONCE = 'pay charge mail check post last'
const DONE: End = {
  effects: ONCE,
  reply: 'charged mailed checked. Last: {"posted":"charged mailed checked."}',
}

/** A function ran when the server was killed. */
const lost = (name: string, effects: string): End => ({
  effects,
  reply: `The server stopped while the step ${name} ran. It may or may not have taken effect. The steps after it did not run.`,
})

/** A tool of an agent ran when the server was killed. The agent continues. */
const unknown = (effects: string): End => ({
  effects,
  reply: 'charged mailed unknown. Last: {"posted":"charged mailed unknown."}',
})

/** The moments at which the server is killed, in their order. */
const ALL_KILL_POINTS: Readonly<Record<string, End>> = {
  'after-response': DONE,
  'before-output-assistant': DONE,
  'after-output-assistant': DONE,
  'before-done-assistant': DONE,
  'after-done-assistant': DONE,
  'before-started-charge': DONE,
  'after-started-charge': lost('charge', 'pay'),
  'before-charge': lost('charge', 'pay'),
  'after-charge': lost('charge', 'pay charge'),
  'before-output-charge': lost('charge', 'pay charge'),
  'after-output-charge': DONE,
  'before-done-charge': DONE,
  'after-done-charge': DONE,
  'before-started-mail': DONE,
  'after-started-mail': DONE,
  'after-mail': { ...DONE, effects: 'pay charge mail mail check post last' },
  'after-done-mail': DONE,
  'before-started-checker': DONE,
  'after-started-checker': DONE,
  'before-call-checker': DONE,
  'after-call-checker': unknown('pay charge mail post last'),
  'before-check': unknown('pay charge mail post last'),
  'after-check': unknown(ONCE),
  'before-result-checker': unknown(ONCE),
  'after-result-checker': DONE,
  'before-output-checker': DONE,
  'after-output-checker': DONE,
  'before-done-checker': DONE,
  'after-done-checker': DONE,
  'before-call-post': DONE,
  'after-call-post': lost('post', 'pay charge mail check'),
  'after-post': lost('post', 'pay charge mail check post'),
  'after-result-post': DONE,
  'after-done-post': DONE,
  'before-started-last': DONE,
  'after-last': { ...lost('last', ONCE) },
  'after-output-last': DONE,
  'before-done-last': DONE,
  'after-done-last': DONE,
  'before-done-steps': DONE,
  'after-done-steps': DONE,
}

/** Before a node or a write, the database is as after the last one. */
const KILL_POINTS = leaveOutRepeated(
  Object.entries(ALL_KILL_POINTS),
  Object.keys(ALL_KILL_POINTS).filter((moment) => moment.startsWith('before-')),
)

function errorOf(message: ChatMessage | undefined): string | undefined {
  const { error } = (message?.metadata ?? {}) as { error?: { message: string } }
  return error?.message
}

const NODES = ['assistant', 'charge', 'mail', 'checker', 'args', 'post', 'last']

/** The states of the steps of a message. */
function stepsOf(message: ChatMessage | undefined): string {
  const parts = (message?.parts ?? []) as { type: string; data?: StepProgress }[]
  const steps = parts.flatMap(({ type, data }) => (type === 'data-steps' && data ? data.steps : []))
  return steps.map(({ name, state }) => `${name} ${state}`).join(', ')
}

/** The entries of the timeline that have not ended. */
async function readRunning(person: Person): Promise<unknown[]> {
  const { body } = await person.get(`/chats/${person.chatId}/timeline`)
  const { entries } = JSON.parse(body) as { entries: { state?: string }[] }
  return entries.filter(({ state }) => state === 'running')
}

/** What a person sees of a chat at one moment. */
async function readOutcome(person: Person) {
  const { body } = await person.get(`/chats/${person.chatId}/messages`)
  const { messages, running } = JSON.parse(body) as { messages: ChatMessage[]; running: boolean }
  const message = messages.at(-1)
  return {
    chatId: person.chatId,
    reply: errorOf(message) ?? textOf(message).replace(/^pay -> .*?\}/, ''),
    call: toolParts(message)[0]?.state,
    steps: stepsOf(message),
    running: running ? ['the turn'] : await readRunning(person),
  }
}

function personOf(moment: string, url: string): Person {
  const chatId = `g0.${moment}.nodes`
  return new Person(url, { user: chatId, chatId })
}

longTest.each(databases)(
  '[AP710] [MP1020] a workflow whose server is killed between or in its nodes continues elsewhere, and each node takes effect once or is reported, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open, { IN_STEPS: 'nodes' })
    const { first, folder } = pair
    const asked = new Map<string, Asked>()
    await Promise.all(
      KILL_POINTS.map(async ([moment]) => {
        const person = personOf(moment, pair.url)
        const question = await person.ask()
        asked.set(moment, question)
        person.answer(question, { approved: true }).catch(() => undefined)
        await first.waitForLine((line) => line === `at ${person.chatId}`)
      }),
    )
    const next = await pair.crash()
    const listEffects = ({ chatId }: Person): string =>
      readEffects(folder.effects, chatId)
        .map(({ name }) => name)
        .join(' ')
    await Promise.all(
      KILL_POINTS.map(async ([moment, { effects, reply }]) => {
        const person = personOf(moment, next)
        // MP1020: the nodes before the one that was lost are done.
        const lostStep = /the step (\w+) ran/.exec(reply)?.[1]
        const index = lostStep === undefined ? NODES.length : NODES.indexOf(lostStep)
        const states: string[] = NODES.map((_node, at) => (at < index ? 'done' : 'pending'))
        if (lostStep !== undefined) states[index] = 'stopped'
        const steps = NODES.map((name, at) => `${name} ${states[at]}`).join(', ')
        // Until the turn is continued, the chat shows what the killed server has stored, which may be the whole reply.
        await expect
          .poll(() => readOutcome(person), POLLING)
          .toEqual({ chatId: person.chatId, reply, call: 'output-available', steps, running: [] })
        expect([moment, listEffects(person)]).toEqual([moment, effects])
      }),
    )
    expect(asked.size).toBe(KILL_POINTS.length)
    // No chat was continued after it had been checked.
    for (const [moment, { effects }] of KILL_POINTS)
      expect([moment, listEffects(personOf(moment, next))]).toEqual([moment, effects])
  },
)
