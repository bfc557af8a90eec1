/* oxlint-disable vitest/expect-expect -- The checks are functions. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { A2aServer } from '../support/a2a-server.ts'
import { type CrashPair, type Lives, openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { nodeQuestionLives, questionLives } from './support/lives/question-lives.ts'
import { remoteAnswerLives } from './support/lives/remote-answer-lives.ts'
import { remoteLives, serveRemote } from './support/lives/remote-lives.ts'
import { signInLives } from './support/lives/sign-in-lives.ts'

/** Leads all chats to their moment, kills the server, and starts the next one. Returns its URL. */
async function crash({ first, second, url }: CrashPair, all: readonly Lives[]): Promise<string> {
  await Promise.all(all.map((lives) => lives.begin(first, url)))
  expect(await first.kill()).toBe('SIGKILL')
  return second.serve()
}

/** The next server continues all chats at once. On a busy machine, it may not renew its leases for seconds. */
const LONG_LEASE = { LEASE_MS: '10000' }

describe.each(oneOf(databases, 'PostgreSQL'))('on $name', ({ open }) => {
  let remote: A2aServer
  let pair: CrashPair
  let next: string
  let questions: Lives
  let signIns: Lives
  let remoteQuestions: Lives
  let remoteAnswers: Lives
  // The chats of all tests wait for the same crash.
  beforeAll(async () => {
    remote = await serveRemote()
    pair = await openCrashPair(open, { A2A_CARD: JSON.stringify(remote.card), ...LONG_LEASE })
    questions = questionLives()
    signIns = signInLives(pair.folder)
    remoteQuestions = remoteLives(remote)
    remoteAnswers = remoteAnswerLives(remote)
    next = await crash(pair, [questions, signIns, remoteQuestions, remoteAnswers])
  })
  afterAll(async () => {
    await pair[Symbol.asyncDispose]()
    await remote[Symbol.asyncDispose]()
  })

  test('[AP427] [AP501] a server killed between a question and its answer, or while it resumes, also inside agents used as tools, loses no answer', () =>
    questions.expectContinued(next))

  test('[AP502] a server killed between an approval, its sign-in and the end of the call loses and repeats nothing', () =>
    signIns.expectContinued(next))

  test('[AP597] a server killed while a remote agent waits sends an approval at most once, and another one continues the task', () =>
    remoteQuestions.expectContinued(next))

  test('[AP694] a server killed with the answer for a remote agent, or a denial, sends it once, and another one shows the reply or the next question', () =>
    remoteAnswers.expectContinued(next))
})

test.each(oneOf(databases, 'SQLite'))(
  '[AP613] [AP710] a server killed while the question of a workflow node is open, or after its answer was stored, loses no answer, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open, { IN_STEPS: 'question' })
    const questions = nodeQuestionLives()
    await questions.expectContinued(await crash(pair, [questions]))
  },
)
