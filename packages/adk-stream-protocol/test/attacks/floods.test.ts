import { randomUUID } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { findLeaks } from '../support/leaks.ts'
import { openTestSetup } from '../faults/support/test-setup.ts'

const GUESSES = times(1_000, 2_000)
/** Calls of one model response. */
const CALLS = times(100, 1_000)
/** Less than the key of a map takes. */
const BYTES_OF_A_KEY = 50

test('[AP25] guessed ids find nothing and use no memory', async () => {
  await using setup = await openTestSetup()
  const person = setup.person()
  const { approvalId } = await person.ask()
  const responses = new Set<string>()
  // Without sockets: what a client library keeps must not be counted.
  const guess = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number += 1) {
      const request = guessing(`adk-${randomUUID()}`, number % 2 === 0)
      const response = await setup.paymentServer.bridge.fetch(request)
      responses.add(`${response.status} ${await response.text()}`)
    }
  }
  await guess(500)
  // A leak would grow with every guess. Other objects of this process may grow sometimes, but not in every round.
  let least = Infinity
  for (let round = 0; round < 8 && least >= GUESSES * BYTES_OF_A_KEY; round += 1) {
    const before = heapAfterGc()
    await guess(GUESSES)
    least = Math.min(least, heapAfterGc() - before)
  }
  expect(least).toBeLessThan(GUESSES * BYTES_OF_A_KEY)
  // An approval of another person gets the same error as one that does not exist.
  const { status, body } = await setup
    .person({ user: 'mallory' })
    .decide(approvalId, { approved: true })
  expect(responses).toEqual(new Set([`${status} ${body}`]))
  expect([status, body]).toEqual([404, expect.stringContaining('unknown-approval')])
  expect((await person.approval(approvalId))?.history).toHaveLength(1)
  expect(setup.effects()).toEqual([])
})

test.each([
  ['not an id', 'x y'],
  ['too long', 'x'.repeat(10_000)],
  ['nothing', '%20'],
  ['NUL', '%00'],
  ['a path', '..%2f..%2fetc%2fpasswd'],
  ['SQL', "'%20OR%201=1--"],
  ['half an escape', '%E0%A4%A'],
  ['a lone surrogate', '%ED%A0%80'],
  ['an object', '__proto__'],
])('[AP25] %s is not an approval', async (_, id) => {
  await using setup = await openTestSetup()
  const person = setup.person()
  await person.ask()
  const answers = [
    await person.get(`/approvals/${id}`),
    await person.decide(id, { approved: true }),
  ]
  for (const { status, body } of answers) {
    expect([400, 404]).toContain(status)
    expect(findLeaks(body)).toEqual([])
  }
  expect(setup.effects()).toEqual([])
})

test('[AP52] of hundreds of calls of a model, only as many as the limit of a chat request approval; the model gets an error for the others', async () => {
  await using setup = await openTestSetup({ limits: { maxPendingPerPrincipal: 10_000 } })
  const person = setup.person()
  const calls = '[[call pay {"to": "花子", "amount": 1}]]'.repeat(CALLS)
  const { chunks } = await person.say(calls)
  const types = chunks.map(({ type }) => type)
  expect(types.filter((type) => type === 'tool-approval-request')).toHaveLength(16)
  expect(types.filter((type) => type === 'tool-output-error')).toHaveLength(CALLS - 16)
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' })

  // The quota is used up: one more call requests no approval, and the turn continues.
  const more = await person.say('[[call pay {"to": "花子", "amount": 2}]]')
  expect(more.chunks.map(({ type }) => type)).not.toContain('tool-approval-request')
  expect(more.chunks.at(-1)?.type).toBe('finish')
  expect(await person.approvals()).toHaveLength(16)

  expect((await person.say('[[say Here.]]')).body).toContain('Here.')
  const lastPrompt = JSON.stringify(setup.paymentServer.emulator.requests.at(-1)?.body)
  expect(lastPrompt.split('too many calls are waiting for approval').length - 1).toBe(
    CALLS - 16 + 1,
  )
  // After a decision, another approval can be requested.
  const [first] = await person.approvals()
  await person.decide(first?.id ?? '', { approved: false })
  expect((await person.ask()).approvalId).not.toBe(first?.id)
})

test('[AP52] the number of pending approvals in all chats of a principal is limited', async () => {
  await using setup = await openTestSetup({ limits: { maxPendingPerChat: 1_000 } })
  const calls = '[[call pay {"to": "花子", "amount": 1}]]'.repeat(times(110, 500))
  const ask = async (user: string, chat: number): Promise<number> => {
    const { chunks } = await setup.person({ user, chatId: `chat-${chat}` }).say(calls)
    expect(chunks.at(-1)?.type).toBe('finish')
    return chunks.filter(({ type }) => type === 'tool-approval-request').length
  }
  let asked = 0
  for (let chat = 0; chat < times(3, 20); chat += 1) asked += await ask('hanako', chat)
  expect(asked).toBe(100)
  expect(await setup.person().approvals()).toHaveLength(100)
  // Other principals are not affected.
  expect(await ask('taro', 1)).toBe(100)
})

test('[AP26] a body that is not a decision decides nothing', async () => {
  await using setup = await openTestSetup({ limits: { maxBodyBytes: 100_000 } })
  const person = setup.person()
  const { approvalId } = await person.ask()
  const path = `/approvals/${approvalId}`
  const nested = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  const bodies: [unknown, number][] = [
    ['', 400],
    ['{', 400],
    ['null', 400],
    ['true', 400],
    ['[]', 400],
    ['{"approved": true', 400],
    ['{"approved": true} {"approved": true}', 400],
    [nested, 400],
    [`{"approved": true, "args": ${nested}}`, 400],
    [{}, 400],
    [{ approved: true, extra: 1 }, 400],
    ['{"approved": true, "__proto__": {"approved": true}}', 400],
    [{ approved: true, reason: 5 }, 400],
    [{ approved: true, reason: 'x'.repeat(2_001) }, 400],
    [{ approved: true, args: 'x' }, 400],
    [{ approved: true, args: [1] }, 400],
    [{ approved: true, args: { to: '花子', amount: -1 } }, 400],
    [{ approved: true, args: { to: '花子', amount: '50' } }, 400],
    [{ approved: true, args: {} }, 400],
    [{ approved: true, reason: 'x'.repeat(200_000) }, 413],
  ]
  for (const [body, status] of bodies) {
    const answer = await person.post(path, body)
    expect([body, answer.status]).toEqual([body, status])
    expect(findLeaks(answer.body)).toEqual([])
  }
  const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']
  for (const type of types) {
    const answer = await person.post(path, { approved: true }, { 'content-type': type })
    expect(answer.status).toBe(415)
  }
  expect((await person.approval(approvalId))?.history).toHaveLength(1)
  expect(setup.effects()).toEqual([])
  expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
})

function guessing(id: string, decides: boolean): Request {
  const headers = { 'x-user': 'mallory', 'content-type': 'application/json' }
  const decision = { method: 'POST', body: JSON.stringify({ approved: true }) }
  return new Request(`http://localhost/approvals/${id}`, { headers, ...(decides && decision) })
}

function heapAfterGc(): number {
  setFlagsFromString('--expose-gc')
  // The flag gives new contexts a `gc`.
  const gc = runInNewContext('gc') as () => void
  gc()
  gc()
  return process.memoryUsage().heapUsed
}
