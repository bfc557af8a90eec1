import { expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { Child } from './support/children.ts'
import { openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person } from './support/person.ts'

const PATIENCE = { timeout: 120_000, interval: 50 }
const ARGS = {
  message: 'How many nights?',
  response_schema: {
    type: 'object',
    properties: { nights: { type: 'integer' } },
    required: ['nights'],
  },
}
const ASK = `[[call adk_request_input ${JSON.stringify(ARGS)}]][[then]][[say Booked.]]`
/** The same question inside agents that are used as tools: the agency asks the desk, which asks the person. */
const NESTED = ['desk', 'agency'].reduce(
  (request, agent) => `[[call ${agent} ${JSON.stringify({ request })}]][[then]][[say Booked.]]`,
  ASK,
)
const ANSWER = { approved: true, payload: { nights: 3 } }

const ANSWERED = ['requested', 'approved', 'started', 'succeeded']
/** The process died after it had taken the answer: the next one gives the answer to the agent. */
const REPEATED = ['requested', 'approved', 'started', 'lost', 'started', 'succeeded']

/** Where the process dies, and the audit record of the question in the end. */
const DEATHS: readonly (readonly [moment: string, history: readonly string[]])[] = [
  ['before-decision', ANSWERED],
  ['after-decision', ANSWERED],
  ['before-claim', ANSWERED],
  ['after-claim', REPEATED],
  ['before-outcome', REPEATED],
  ['after-outcome', ANSWERED],
  ['before-response', ANSWERED],
  ['after-response', ANSWERED],
]

/** The deaths inside agents used as tools: the agents' results are stored one after the other. */
const NESTED_DEATHS: typeof DEATHS = [
  ...DEATHS.filter(([moment]) => moment !== 'after-response'),
  ['before-desk', ANSWERED],
  ['after-desk', ANSWERED],
  ['before-agency', ANSWERED],
]

test.each(oneOf(databases, 'PostgreSQL'))(
  '[AP427] [AP501] a server killed between a question and its answer, or while it resumes, also inside agents used as tools, loses no answer, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open)
    const { first, second, url } = pair
    const answer = (place: Place, all: typeof DEATHS) =>
      Promise.all(all.map(([moment]) => answerUntil(moment, first, { url, place })))
    const [ids, nestedIds] = await Promise.all([
      answer('top', DEATHS),
      answer('nested', NESTED_DEATHS),
    ])
    const waiting = new Person(url, { user: 'waiting', chatId: 'waiting' })
    await waiting.say(ASK)
    expect(await first.kill()).toBe('SIGKILL')
    const next = await second.serve()
    await Promise.all([
      ...DEATHS.map(([moment, history], index) =>
        expectAnswered(personOf(moment, next, 'top'), ids[index] ?? '', { moment, history }),
      ),
      ...NESTED_DEATHS.map(([moment, history], index) =>
        expectAnsweredInside(personOf(moment, next, 'nested'), nestedIds[index] ?? '', {
          moment,
          history,
        }),
      ),
    ])
    const later = new Person(next, { user: 'waiting', chatId: 'waiting' })
    const [question] = await later.approvals()
    expect((await later.decide(question?.id ?? '', ANSWER)).status).toBe(200)
    await expectAnswered(later, question?.id ?? '', { moment: 'none', history: ANSWERED })
  },
)

test.each(oneOf(databases, 'SQLite'))(
  '[AP613] a server killed while the question of a workflow node is open, or after its answer was stored, loses no answer, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open, { IN_STEPS: 'question' })
    const { first, second, url } = pair
    const ids = await Promise.all(
      DEATHS.map(([moment]) => answerUntil(moment, first, { url, place: 'node' })),
    )
    expect(await first.kill()).toBe('SIGKILL')
    const next = await second.serve()
    await Promise.all(
      DEATHS.map(([moment, history], index) =>
        expectAnswered(personOf(moment, next, 'node'), ids[index] ?? '', { moment, history }),
      ),
    )
  },
)

/** Whether the agent of the chat asks, one that is used as a tool, or a node of a workflow. */
type Place = 'top' | 'nested' | 'node'

const TEXTS: Readonly<Record<Place, string>> = { top: ASK, nested: NESTED, node: 'Go.' }

function personOf(moment: string, url: string, place: Place): Person {
  const chatId = `g0.${moment}.${place}`
  return new Person(url, { user: chatId, chatId })
}

/** Asks and answers. The process stops for good at the moment. */
async function answerUntil(
  moment: string,
  server: Child,
  { url, place }: { readonly url: string; readonly place: Place },
): Promise<string> {
  const person = personOf(moment, url, place)
  await person.say(TEXTS[place])
  const [question] = await person.approvals()
  const answering = person.decide(question?.id ?? '', ANSWER)
  answering.catch(() => undefined)
  await server.said((line) => line === `at ${person.chatId}`)
  return question?.id ?? ''
}

async function expectAnswered(
  person: Person,
  id: string,
  { moment, history }: { moment: string; history: readonly string[] },
): Promise<void> {
  if (moment === 'before-decision') await person.decide(id, ANSWER)
  const read = async () => {
    const [, reply] = await person.messages()
    return [moment, textOf(reply), ...toolParts(reply).map(({ output }) => output)]
  }
  // When the answer is part of the conversation, only a workflow continues.
  const isLeft = moment === 'after-response' && !person.chatId.endsWith('.node')
  const text = isLeft ? '' : 'Booked.'
  await expect.poll(read, PATIENCE).toEqual([moment, text, { nights: 3 }])
  const record = await person.approval(id)
  expect([moment, ...(record?.history ?? []).map(({ type }) => type)]).toEqual([moment, ...history])
  expect((await person.decide(id, ANSWER)).code).toBe('approval-decided')
}

async function expectAnsweredInside(
  person: Person,
  id: string,
  { moment, history }: { moment: string; history: readonly string[] },
): Promise<void> {
  if (moment === 'before-decision') await person.decide(id, ANSWER)
  const read = async () => {
    const [, reply] = await person.messages()
    const [agency, question] = toolParts(reply)
    return [moment, textOf(reply), agency?.output, question?.output]
  }
  const ended = [moment, 'Booked.', { result: 'Booked.' }, { nights: 3 }]
  await expect.poll(read, PATIENCE).toEqual(ended)
  const record = await person.approval(id)
  expect([moment, ...(record?.history ?? []).map(({ type }) => type)]).toEqual([moment, ...history])
}
