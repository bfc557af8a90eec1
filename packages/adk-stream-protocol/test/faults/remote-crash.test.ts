import type { Part } from '@a2a-js/sdk'
import { expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { A2aServer } from '../support/a2a-server.ts'
import { serveA2a } from '../support/a2a-server.ts'
import { textOf } from '../support/chat-probe.ts'
import type { Child } from './support/children.ts'
import { openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person } from './support/person.ts'

const PATIENCE = { timeout: 120_000, interval: 50 }
const LOST = 'The agent may or may not have received it.'
const STOPPED = 'the server stopped before it replied'

/** Where the process dies, how often the remote agent got the approval, and what the person reads in the end. */
const DEATHS: readonly (readonly [moment: string, sent: number, text: string])[] = [
  ['before-decision', 1, 'Paid.'],
  ['after-decision', 1, 'Paid.'],
  ['before-claim', 1, 'Paid.'],
  ['after-claim', 0, LOST],
  ['before-outcome', 1, LOST],
  ['after-outcome', 1, STOPPED],
  ['before-response', 1, STOPPED],
]

test.each(oneOf(databases, 'PostgreSQL'))(
  '[AP597] a server killed while a remote agent waits sends an approval at most once, and another one continues the task, on $name',
  async ({ open }) => {
    await using remote = await serveA2a(({ parts }) =>
      isAnswer(parts)
        ? { state: 'completed', parts: [{ kind: 'text', text: 'Paid.' }] }
        : { state: 'input-required', parts: [REQUEST] },
    )
    await using pair = await openCrashPair(open, { A2A_CARD: JSON.stringify(remote.card) })
    const { first, second, url } = pair
    const ids = await Promise.all(
      DEATHS.map(([moment]) => approveUntil(moment, first, { url, remote })),
    )
    expect(await first.kill()).toBe('SIGKILL')
    const next = await second.serve()
    await Promise.all(
      DEATHS.map(async ([moment, sent, text], index) => {
        const person = personOf(moment, next)
        const { approvalId = '', taskId = '' } = ids[index] ?? {}
        if (moment === 'before-decision') await person.decide(approvalId, { approved: true })
        const read = async () => textOf((await person.messages())[1])
        await expect.poll(read, PATIENCE).toContain(text)
        const answers = remote.received.filter(
          (request) => request.taskId === taskId && isAnswer(request.parts),
        )
        expect([moment, answers.length]).toEqual([moment, sent])
        expect((await person.decide(approvalId, { approved: true })).code).toBe('approval-decided')
      }),
    )
  },
)

const REQUEST: Part = {
  kind: 'data',
  data: {
    id: 'same',
    name: 'adk_request_confirmation',
    args: { originalFunctionCall: { id: 'call', name: 'pay', args: { amount: 5 } } },
  },
  metadata: { adk_type: 'function_call', adk_is_long_running: true },
}

function isAnswer(parts: readonly Part[]): boolean {
  return JSON.stringify(parts).includes('"confirmed":true')
}

function personOf(moment: string, url: string): Person {
  const chatId = `g0.${moment}.remote`
  return new Person(url, { user: chatId, chatId })
}

/** Asks the remote agent and approves what it asks. The process stops for good at the moment. */
async function approveUntil(
  moment: string,
  server: Child,
  { url, remote }: { readonly url: string; readonly remote: A2aServer },
): Promise<{ readonly approvalId: string; readonly taskId: string | undefined }> {
  const person = personOf(moment, url)
  // The remote agent reads the text, which says whose task it is.
  await person.say(`${moment} [[call transfer_to_agent {"agentName":"helper"}]]`)
  const taskId = remote.received.find(({ text }) => text.includes(`${moment} [[`))?.taskId
  const [asked] = await person.approvals()
  const approvalId = asked?.id ?? ''
  const deciding = person.decide(approvalId, { approved: true })
  deciding.catch(() => undefined)
  await server.said((line) => line === `at ${person.chatId}`)
  return { approvalId, taskId }
}
