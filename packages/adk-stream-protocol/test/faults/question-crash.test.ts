/* oxlint-disable vitest/expect-expect -- The checks are functions. */
import { afterAll, beforeAll, describe, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { A2aServer } from '../support/a2a-server.ts'
import { type CrashPair, type CrashScenarios, openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import {
  nodeQuestionScenarios,
  questionScenarios,
} from './support/crash-scenarios/question-scenarios.ts'
import {
  grantScenarios,
  planScenarios,
  waitingScenarios,
} from './support/crash-scenarios/grant-scenarios.ts'
import { remoteAnswerScenarios } from './support/crash-scenarios/remote-answer-scenarios.ts'
import { remoteScenarios, serveRemote } from './support/crash-scenarios/remote-scenarios.ts'
import { signInScenarios } from './support/crash-scenarios/sign-in-scenarios.ts'

/** Leads all chats to their moment, kills the server, and starts the next one. Returns its URL. */
async function crash(pair: CrashPair, all: readonly CrashScenarios[]): Promise<string> {
  await Promise.all(all.map((scenarios) => scenarios.begin(pair.first, pair.url)))
  return pair.crash()
}

describe.each(oneOf(databases, 'PostgreSQL'))('on $name', ({ open }) => {
  let remote: A2aServer
  let pair: CrashPair
  let next: string
  let questions: CrashScenarios
  let signIns: CrashScenarios
  let remoteQuestions: CrashScenarios
  let remoteAnswers: CrashScenarios
  let grants: CrashScenarios
  let plans: CrashScenarios
  let waiting: CrashScenarios
  // The chats of all tests wait for the same crash.
  beforeAll(async () => {
    remote = await serveRemote()
    pair = await openCrashPair(open, { A2A_CARD: JSON.stringify(remote.card) })
    questions = questionScenarios()
    signIns = signInScenarios(pair.folder)
    remoteQuestions = remoteScenarios(remote)
    remoteAnswers = remoteAnswerScenarios(remote)
    grants = grantScenarios(pair.folder)
    plans = planScenarios(pair.folder)
    waiting = waitingScenarios(pair.folder)
    const all = [questions, signIns, remoteQuestions, remoteAnswers, grants, plans, waiting]
    next = await crash(pair, all)
  })
  afterAll(async () => {
    await pair[Symbol.asyncDispose]()
    await remote[Symbol.asyncDispose]()
  })

  test('[LG1] [AP500] a server killed between a question and its answer, or while it resumes, also inside agents used as tools, loses no answer', () =>
    questions.expectContinued(next))

  test('[AP502] a server killed between an approval, its sign-in and the end of the call loses and repeats nothing', () =>
    signIns.expectContinued(next))

  test('[AP597] a server killed while a remote agent waits sends an approval at most once, and another one continues the task', () =>
    remoteQuestions.expectContinued(next))

  test('[AP597] a server killed with the answer for a remote agent, or a denial, sends it once, and another one shows the reply or the next question', () =>
    remoteAnswers.expectContinued(next))

  test('[GR1633] a server killed while it runs a covered call leaves its use spent, and the call does not run again', () =>
    grants.expectContinued(next))

  test('[GR1826] a server killed while an approved plan is stored has stored all of it or nothing', () =>
    plans.expectContinued(next))

  test('[GR1944] after a server was killed, a turn whose call waits continues by itself when a person approves it with a grant, and the grant covers the calls that follow, each once', () =>
    waiting.expectContinued(next))
})

test.each(oneOf(databases, 'SQLite'))(
  '[AP484] [AP710] a server killed while the question of a workflow node is open, or after its answer was stored, loses no answer, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open, { IN_STEPS: 'question' })
    const questions = nodeQuestionScenarios()
    await questions.expectContinued(await crash(pair, [questions]))
  },
)
