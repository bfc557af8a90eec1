import type { Part } from '@a2a-js/sdk'
import { expect } from 'vitest'

import type { A2aServer, RemoteReply, RemoteRequest } from '../../../support/a2a-server.ts'
import { textOf } from '../../../support/chat-probe.ts'
import type { Child } from '../children.ts'
import { type CrashScenarios, POLLING } from '../crash-pair.ts'
import { Person } from '../person.ts'

/** What the remote agent does with the answer: it ends or asks again. Or the person denies the approval that it asks for. */
type Then = 'ends' | 'asks' | 'denied'

/** Where the process is killed with an answer or a denial, and what the person reads. */
const KILL_POINTS: readonly (readonly [moment: string, then: Then, text: string])[] = [
  ['before-decision', 'ends', 'Kyoto it is.'],
  ['after-outcome', 'ends', 'Kyoto it is.'],
  ['before-response', 'ends', 'Kyoto it is.'],
  ['after-outcome', 'asks', ''],
  // The answer must not count for the next question.
  ['before-response', 'asks', ''],
  ['after-decision', 'denied', 'Not paid.'],
  ['before-response', 'denied', 'Not paid.'],
]

const ANSWER = { approved: true, payload: 'Kyoto' }
const DENIAL = '"confirmed":false'

/** Returns what the remote agent replies in these chats. `first` is the first message of the task. */
export function replyToAnswer(
  { text }: RemoteRequest,
  first: RemoteRequest | undefined,
): RemoteReply | undefined {
  if (text.includes(DENIAL)) return { state: 'completed', parts: [say('Not paid.')] }
  if (text.includes('Kyoto'))
    return first?.text.includes('then asks')
      ? { state: 'input-required', parts: [say('Which hotel?')] }
      : { state: 'completed', parts: [say('Kyoto it is.')] }
  return /then (?:ends|asks)/.test(text)
    ? { state: 'input-required', parts: [say('Which city?')] }
    : undefined
}

/** Questions of a remote agent that are answered, and approvals that are denied. */
export function remoteAnswerScenarios(remote: A2aServer): CrashScenarios {
  let tasks: (string | undefined)[] = []
  return {
    begin: async (server, url) => {
      tasks = await Promise.all(
        KILL_POINTS.map(([moment, then]) =>
          answerUntil(personOf(moment, then, url), server, remote),
        ),
      )
    },
    expectContinued: async (url) => {
      await Promise.all(
        KILL_POINTS.map(async ([moment, then, text], index) => {
          const { person } = personOf(moment, then, url)
          if (moment === 'before-decision')
            for (const { id } of await person.approvals()) await person.decide(id, ANSWER)
          const read = async () => textOf((await person.messages())[1])
          const hints = async () => (await person.approvals()).map(({ hint }) => hint)
          await expect.poll(read, POLLING).toBe(text)
          await expect.poll(hints, POLLING).toEqual(then === 'asks' ? ['Which hotel?'] : [])
          const answers = remote.received.filter(
            ({ taskId, text: sent }) =>
              taskId === tasks[index] && (sent.includes('Kyoto') || sent.includes(DENIAL)),
          )
          expect([moment, then, answers.length]).toEqual([moment, then, 1])
        }),
      )
    },
  }
}

interface Answering {
  readonly person: Person
  readonly isDenied: boolean
  /** The text that the remote agent reads, which says whose task it is. */
  readonly words: string
}

function personOf(moment: string, then: Then, url: string): Answering {
  const chatId = `g0.${moment}.${then}`
  const person = new Person(url, { user: chatId, chatId })
  return { person, isDenied: then === 'denied', words: `${moment} then ${then}` }
}

/** Asks the remote agent and answers its question. The process stops at the kill point. Returns the task. */
async function answerUntil(
  { person, isDenied, words }: Answering,
  server: Child,
  remote: A2aServer,
): Promise<string | undefined> {
  await person.say(`${words} [[call transfer_to_agent {"agentName":"helper"}]]`)
  const [asked] = await person.approvals()
  const deciding = person.decide(asked?.id ?? '', isDenied ? { approved: false } : ANSWER)
  deciding.catch(() => undefined)
  await server.waitForLine((line) => line === `at ${person.chatId}`)
  return remote.received.find(({ text }) => text.includes(words))?.taskId
}

function say(text: string): Part {
  return { kind: 'text', text }
}
