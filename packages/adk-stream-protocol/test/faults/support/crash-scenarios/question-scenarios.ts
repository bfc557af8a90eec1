import { expect } from 'vitest'

import { textOf, toolParts } from '../../../support/chat-probe.ts'
import type { Child } from '../children.ts'
import { type CrashScenarios, leaveOutRepeated, POLLING } from '../crash-pair.ts'
import { Person } from '../person.ts'

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
/** The process was killed after it had accepted the answer: the next one passes the answer to the agent. */
const REPEATED = ['requested', 'approved', 'started', 'lost', 'started', 'succeeded']

/** Where the process is killed, and the audit record of the question in the end. */
type KillPoint = readonly [moment: string, history: readonly string[]]

const ALL_KILL_POINTS: readonly KillPoint[] = [
  ['before-decision', ANSWERED],
  ['after-decision', ANSWERED],
  ['before-claim', ANSWERED],
  ['after-claim', REPEATED],
  ['before-outcome', REPEATED],
  ['after-outcome', ANSWERED],
  ['before-response', ANSWERED],
  ['after-response', ANSWERED],
]
const REPEATED_POINTS = ['before-claim', 'before-outcome', 'before-response']
const KILL_POINTS = leaveOutRepeated(ALL_KILL_POINTS, REPEATED_POINTS)

/** The kill points inside agents used as tools: the agents' results are stored one after the other. */
const NESTED_KILL_POINTS = leaveOutRepeated<KillPoint>(
  [
    ...ALL_KILL_POINTS.filter(([moment]) => moment !== 'after-response'),
    ['before-desk', ANSWERED],
    ['after-desk', ANSWERED],
    ['before-agency', ANSWERED],
  ],
  [...REPEATED_POINTS, 'before-agency'],
)

/** The kill points of a workflow: the node that asks runs again with the answer, and the next one books. */
const NODE_KILL_POINTS = leaveOutRepeated<KillPoint>(
  [
    ...ALL_KILL_POINTS,
    ['before-output-ask', ANSWERED],
    ['after-output-ask', ANSWERED],
    ['after-done-ask', ANSWERED],
    ['before-started-book', ANSWERED],
    ['after-started-book', ANSWERED],
    ['after-output-book', ANSWERED],
    ['before-done-steps', ANSWERED],
  ],
  [...REPEATED_POINTS, 'before-started-book'],
)

/** The function that runs at these moments may have taken effect. */
const LOST: Readonly<Record<string, string>> = {
  'before-output-ask': 'ask',
  'after-started-book': 'book',
}

/** Questions of the agent of the chat, and of agents that are used as tools. */
export function questionScenarios(): CrashScenarios {
  let ids: string[] = []
  let nestedIds: string[] = []
  return {
    begin: async (server, url) => {
      const answer = (place: Place, all: readonly KillPoint[]) =>
        Promise.all(all.map(([moment]) => answerUntil(moment, server, { url, place })))
      ;[ids, nestedIds] = await Promise.all([
        answer('top', KILL_POINTS),
        answer('nested', NESTED_KILL_POINTS),
        new Person(url, WAITING).say(ASK),
      ])
    },
    expectContinued: async (url) => {
      await Promise.all([
        ...KILL_POINTS.map(([moment, history], index) =>
          expectAnswered(personOf(moment, url, 'top'), ids[index] ?? '', { moment, history }),
        ),
        ...NESTED_KILL_POINTS.map(([moment, history], index) =>
          expectAnsweredInside(personOf(moment, url, 'nested'), nestedIds[index] ?? '', {
            moment,
            history,
          }),
        ),
      ])
      const later = new Person(url, WAITING)
      const [question] = await later.approvals()
      expect((await later.decide(question?.id ?? '', ANSWER)).status).toBe(200)
      await expectAnswered(later, question?.id ?? '', { moment: 'none', history: ANSWERED })
    },
  }
}

/** Questions of the node of a workflow. */
export function nodeQuestionScenarios(): CrashScenarios {
  let ids: string[] = []
  return {
    begin: async (server, url) => {
      const answers = NODE_KILL_POINTS.map(([moment]) =>
        answerUntil(moment, server, { url, place: 'node' }),
      )
      ids = await Promise.all(answers)
    },
    expectContinued: async (url) => {
      await Promise.all(
        NODE_KILL_POINTS.map(([moment, history], index) =>
          expectAnswered(personOf(moment, url, 'node'), ids[index] ?? '', { moment, history }),
        ),
      )
    },
  }
}

/** Somebody who has not answered when the server is killed. */
const WAITING = { user: 'waiting', chatId: 'waiting' }

/** Whether the agent of the chat asks, one that is used as a tool, or a node of a workflow. */
type Place = 'top' | 'nested' | 'node'

const TEXTS: Readonly<Record<Place, string>> = { top: ASK, nested: NESTED, node: 'Go.' }

function personOf(moment: string, url: string, place: Place): Person {
  const chatId = `g0.${moment}.${place}`
  return new Person(url, { user: chatId, chatId })
}

/** Asks and answers. The process stops at the kill point. */
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
  await server.waitForLine((line) => line === `at ${person.chatId}`)
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
    const { error } = (reply?.metadata ?? {}) as { error?: { message: string } }
    const words = error?.message.split('. ')[0]
    const said = words === undefined ? textOf(reply) : `${words}.`
    return [moment, said, ...toolParts(reply).map(({ output }) => output)]
  }
  const lost = LOST[moment]
  const text = lost === undefined ? 'Booked.' : `The server stopped while the step ${lost} ran.`
  await expect.poll(read, POLLING).toEqual([moment, text, { nights: 3 }])
  await expectHistory(person, id, { moment, history })
  expect((await person.decide(id, ANSWER)).code).toBe('approval-decided')
}

/** Expects the audit entries of a question. */
async function expectHistory(
  person: Person,
  id: string,
  { moment, history }: { moment: string; history: readonly string[] },
): Promise<void> {
  const record = await person.approval(id)
  expect([moment, ...(record?.history ?? []).map(({ type }) => type)]).toEqual([moment, ...history])
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
  await expect.poll(read, POLLING).toEqual(ended)
  await expectHistory(person, id, { moment, history })
}
