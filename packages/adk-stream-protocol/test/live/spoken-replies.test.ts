import { setTimeout as delay } from 'node:timers/promises'

import { firstOf, scriptResponder } from 'gemini-emulator'
import { expect, test } from 'vitest'

import type { LiveMessage } from '../../src/modules/live/session/live-message.ts'
import { TurnTaking } from '../../src/modules/live/session/turn-taking.ts'
import { UserSpeech, type ShownQuestion } from '../../src/modules/live/session/user-speech.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import {
  joinLive,
  nextUnasked,
  openLiveTestBridge,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'
import { speak } from './support/voice.ts'

/** The transcript of a question counts from one second after it was shown. */
const SHOWN_MS = 1_100

function openTestBridge(): Promise<TestBridge> {
  return openLiveTestBridge({
    spoken: true,
    liveModel: FREE_MODEL,
    approvals: { process_payment: { acceptReplies: true } },
    respond: firstOf(scriptResponder, () => [{ type: 'say', text: 'OK.' }]),
  })
}

async function historyOf(testBridge: TestBridge, id: string) {
  return (await testBridge.page().approval(id)).history
}

test.each([
  ['Yes, send it.', 'approved', 1],
  ['いいえ、やめて', 'denied', 0],
] as const)('[AP515] what the person says decides: %s', async (words, decision, payments) => {
  await using testBridge = await openTestBridge()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say(callPayment(50))
  const [id = ''] = await untilAsked(client)
  await delay(SHOWN_MS)
  testBridge.emulator.live.queueTranscript(words)
  speak(client)
  await expect
    .poll(async () => (await historyOf(testBridge, id)).map(({ type }) => type))
    .toContain(decision)
  const reply = { words, channel: 'spoken' }
  expect((await historyOf(testBridge, id))[1]).toMatchObject({ by: 'hanako', reply })
  await expect.poll(() => testBridge.wallet.payments).toHaveLength(payments)
  // The words are a message of the person.
  await expect.poll(async () => JSON.stringify(await testBridge.page().messages())).toContain(words)
})

test('[AP515] what the model says, and what is not a reply, decides nothing', async () => {
  await using testBridge = await openTestBridge()
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say(callPayment(50))
  const [id = ''] = await untilAsked(client)
  await delay(SHOWN_MS)
  for (const [index, words] of ['[[say yes]]', 'はい？', 'yes but only 20'].entries()) {
    testBridge.emulator.live.queueTranscript(words)
    speak(client)
    await whole(client, await nextUnasked(client, index))
  }
  expect(await historyOf(testBridge, id)).toHaveLength(1)
  expect(testBridge.wallet.payments).toEqual([])
})

test('[AP515] words that may have been spoken before the question was shown decide nothing', () => {
  const decided: (readonly string[])[] = []
  let questions: ShownQuestion[] = []
  const speech = new UserSpeech({
    turnTaking: new TurnTaking({ completesCalls: true }),
    listQuestions: () => questions,
    onWords: (words, ids) => decided.push([words, ...ids]),
  })
  const say = (): void => {
    speech.add('yes', false)
    speech.add(' please', false)
    speech.add('yes please', true)
  }
  const question = { approvalId: 'a', shownAt: performance.now() - 60_000, isPromptKnown: true }
  // Without a question, shortly after one was shown, and while the words that led to it are not known.
  say()
  questions = [{ ...question, shownAt: performance.now() }]
  say()
  questions = [{ ...question, isPromptKnown: false }]
  say()
  // The person began to speak before the question was shown.
  questions = []
  speech.add('yes', false)
  questions = [question]
  speech.add('yes', true)
  // A last piece without a first one.
  speech.add('yes', true)
  expect(decided).toEqual([])
  say()
  expect(decided).toEqual([['yes please', 'a']])
})

test('[LV1962] words that are recognized after a reply was stopped belong to it until the model has ended it', () => {
  const turnTaking = new TurnTaking<LiveMessage>({ completesCalls: false })
  const speech = new UserSpeech({ turnTaking, listQuestions: () => [], onWords: () => undefined })
  speech.add('What is', false)
  turnTaking.apply({ type: 'output-received' })
  const stopped = turnTaking.speaker
  if (!stopped) throw new Error('No message speaks.')
  stopped.isUserMessageStored = true
  stopped.stop()
  speech.add(' the time?', false)
  expect(turnTaking.isReplyExpected(stopped)).toBe(true)
  turnTaking.apply({ type: 'turn-completed' })
  expect(turnTaking.isReplying).toBe(false)
  speech.add('And the date?', false)
  turnTaking.apply({ type: 'output-received' })
  expect([stopped.transcript, turnTaking.speaker?.transcript]).toEqual([
    'What is the time?',
    'And the date?',
  ])
})
