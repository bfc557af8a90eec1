import { createHash } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { type Call, digestCall } from '../../src/approvals/digest.ts'
import {
  type ApprovalPolicy,
  type PolicyVerdict,
  resolvePolicy,
} from '../../src/approvals/policy.ts'
import { chat, ownerStep } from './support/fixture.ts'

const call: Call = { chat, toolCallId: 'call-1', toolName: 'pay', args: { b: 1, a: '花子' } }

test('[LG16] the digest is SHA-256 over canonical JSON of chat, call, tool and arguments', () => {
  const canonical = '["demo","hanako","chat-1","call-1","pay",{"a":"花子","b":1}]'
  const expected = createHash('sha256').update(canonical).digest('base64url')
  expect(digestCall(call)).toBe(expected)
  expect(digestCall({ ...call, args: { a: '花子', b: 1 } })).toBe(expected)
})

test('[LG16] every part of a call affects the digest', () => {
  const others = [
    { chat: { ...chat, appName: 'x' } },
    { chat: { ...chat, principalId: 'x' } },
    { chat: { ...chat, chatId: 'x' } },
    { toolCallId: 'x' },
    { toolName: 'x' },
    { args: {} },
    { args: { a: '花子', b: '1' } },
    { args: JSON.parse('{"a": "花子", "b": 1, "__proto__": {"admin": true}}') as Call['args'] },
    // Moving text from one name to the next must not give the same digest.
    { chat: { ...chat, chatId: 'chat-1","call-1' }, toolCallId: 'pay' },
  ]
  const digests = [{}, ...others].map((change) => digestCall({ ...call, ...change }))
  expect(new Set(digests).size).toBe(digests.length)
})

function deep(levels: number): Call['args'] {
  return JSON.parse('{"a":'.repeat(levels) + '1' + '}'.repeat(levels)) as Call['args']
}

test('[LG16] hostile arguments are digested or rejected without harm', () => {
  expect(digestCall({ ...call, args: deep(200) })).toHaveLength(43)
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  for (const args of [deep(201), deep(100_000), cyclic, { big: 1n }, { not: Number.NaN }])
    expect(() => digestCall({ ...call, args })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
  expect(
    digestCall({ ...call, args: { huge: 'x'.repeat(5_000_000), lone: '\ud800' } }),
  ).toHaveLength(43)
  expect(Reflect.has({}, 'admin')).toBe(false)
})

const asked = { chat, toolName: 'pay', args: { amount: 50 } }
const ungated = { required: () => false }

afterEach(() => vi.useRealTimers())

test.each<[string, PromiseLike<PolicyVerdict>]>([
  ['promise', new Promise(() => undefined)],
  // oxlint-disable-next-line unicorn/no-thenable -- query builders of databases return such objects
  ['object with `then`', { then: () => new Promise(() => undefined) }],
])(
  '[AP801] a policy that returns a %s that is never resolved requires approval',
  async (_kind, result) => {
    const hanging: ApprovalPolicy = () => result as Promise<PolicyVerdict>
    vi.useFakeTimers()
    const errors: unknown[] = []
    const onError = (error: unknown): number => errors.push(error)
    const terms = resolvePolicy(hanging, asked, { ...ungated, onError })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await terms).toMatchObject({ chain: [ownerStep] })
    expect(errors.map(String)).toEqual(['Error: The policy for pay took longer than 5000 ms.'])
  },
)

async function resolve(answer: unknown, defaults: Parameters<typeof resolvePolicy>[2] = ungated) {
  // A policy written in JavaScript may return anything.
  return resolvePolicy({ pay: () => answer as PolicyVerdict }, asked, defaults)
}

test('[AP19] by default the owner of the chat decides within a day', async () => {
  expect(await resolve(true)).toEqual({
    chain: [ownerStep],
    idempotent: false,
    deadlineMs: 86_400_000,
  })
  const defaults = { required: () => true, deadlineMs: 5, hint: 'Pay?', payload: { a: 1 } }
  const expected = {
    chain: [ownerStep],
    idempotent: false,
    deadlineMs: 5,
    hint: 'Pay?',
    payload: { a: 1 },
  }
  expect(await resolvePolicy({}, asked, defaults)).toEqual(expected)
})

test('[AP19] no approval if the policy waives it, or if neither policy nor tool requires it', async () => {
  expect(await resolve(false)).toBeUndefined()
  expect(await resolve({ required: false, hint: 'x' })).toBeUndefined()
  expect(await resolvePolicy({}, asked, ungated)).toBeUndefined()
  expect(
    await resolvePolicy({ constructor: true }, { ...asked, toolName: 'toString' }, ungated),
  ).toBeUndefined()
})

const byAmount: ApprovalPolicy = ({ args }) =>
  Number(args['amount']) >= 50 && {
    severity: 'high',
    deciders: { roles: ['manager'] },
    approvers: 2,
  }

test('[AP19] a policy by tool name or by function decides from the arguments', async () => {
  expect(await resolvePolicy(byAmount, { ...asked, args: { amount: 49 } }, ungated)).toBeUndefined()
  expect(await resolvePolicy(byAmount, asked, ungated)).toEqual({
    severity: 'high',
    chain: [{ count: 2, principals: [], roles: ['manager'] }],
    idempotent: false,
    deadlineMs: 86_400_000,
  })
  const chain = [{ roles: ['manager'] }, { principals: ['sachiko'], count: 1 }]
  const terms = { title: '送金', icon: 'coin', deadlineMs: 1_000, idempotent: true, chain }
  expect(await resolvePolicy({ pay: terms }, asked, ungated)).toEqual({
    title: '送金',
    icon: 'coin',
    chain: [
      { count: 1, principals: [], roles: ['manager'] },
      { count: 1, principals: ['sachiko'], roles: [] },
    ],
    idempotent: true,
    deadlineMs: 1_000,
  })
})

test('[AP19] a policy that throws or returns an invalid verdict requires approval and is reported', async () => {
  const required = { chain: [ownerStep], idempotent: false, deadlineMs: 86_400_000 }
  const failing: ApprovalPolicy[] = [
    () => {
      throw new Error('broken')
    },
    async () => Promise.reject(new Error('broken')),
  ]
  for (const policy of failing) {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    expect(await resolvePolicy(policy, asked, { ...ungated, onError })).toEqual(required)
    expect(errors).toHaveLength(1)
  }
  for (const nonsense of [
    undefined,
    null,
    'no',
    0,
    { approvers: 0 },
    { deadlineMs: -1 },
    { chain: [] },
    { requird: false },
  ])
    expect(await resolve(nonsense)).toEqual(required)
})
