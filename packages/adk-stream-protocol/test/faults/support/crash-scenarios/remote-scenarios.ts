import type { Part } from '@a2a-js/sdk'
import { expect } from 'vitest'

import type { A2aServer, RemoteReply } from '../../../support/a2a-server.ts'
import { serveA2a } from '../../../support/a2a-server.ts'
import { textOf } from '../../../support/chat-probe.ts'
import type { Child } from '../children.ts'
import { type CrashScenarios, leaveOutRepeated, POLLING } from '../crash-pair.ts'
import { Person } from '../person.ts'
import { replyToAnswer } from './remote-answer-scenarios.ts'

const LOST = 'The agent may or may not have received it.'
const STOPPED = 'the server stopped before it replied'

/** Where the process is killed, how often the remote agent got the approval, and what the person reads in the end. */
type KillPoint = readonly [moment: string, sent: number, text: string]

const ALL_KILL_POINTS: readonly KillPoint[] = [
  ['before-decision', 1, 'Paid.'],
  ['after-decision', 1, 'Paid.'],
  ['before-claim', 1, 'Paid.'],
  ['after-claim', 0, LOST],
  ['before-outcome', 1, LOST],
  ['after-outcome', 1, STOPPED],
  ['before-response', 1, STOPPED],
]
const KILL_POINTS = leaveOutRepeated(ALL_KILL_POINTS, ['before-claim', 'before-response'])

/** Starts a remote agent that asks for an approval, or for an answer. */
export async function serveRemote(): Promise<A2aServer> {
  const remote = await serveA2a((request): RemoteReply => {
    const { parts, taskId } = request
    if (isAnswer(parts)) return { state: 'completed', parts: [{ kind: 'text', text: 'Paid.' }] }
    const first = remote.received.find((received) => received.taskId === taskId)
    return replyToAnswer(request, first) ?? { state: 'input-required', parts: [REQUEST] }
  })
  return remote
}

/** Approvals for which a remote agent asks. */
export function remoteScenarios(remote: A2aServer): CrashScenarios {
  let begun: Awaited<ReturnType<typeof approveUntil>>[] = []
  return {
    begin: async (server, url) => {
      const approvals = KILL_POINTS.map(([moment]) => approveUntil(moment, server, { url, remote }))
      begun = await Promise.all(approvals)
    },
    expectContinued: async (url) => {
      await Promise.all(
        KILL_POINTS.map(async ([moment, sent, text], index) => {
          const person = personOf(moment, url)
          const { approvalId = '', taskId = '' } = begun[index] ?? {}
          if (moment === 'before-decision') await person.decide(approvalId, { approved: true })
          const read = async () => textOf((await person.messages())[1])
          await expect.poll(read, POLLING).toContain(text)
          const answers = remote.received.filter(
            (request) => request.taskId === taskId && isAnswer(request.parts),
          )
          expect([moment, answers.length]).toEqual([moment, sent])
          const again = await person.decide(approvalId, { approved: true })
          expect(again.code).toBe('approval-decided')
        }),
      )
    },
  }
}

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

/** Asks the remote agent and approves its request. The process stops at the kill point. */
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
  await server.waitForLine((line) => line === `at ${person.chatId}`)
  return { approvalId, taskId }
}
