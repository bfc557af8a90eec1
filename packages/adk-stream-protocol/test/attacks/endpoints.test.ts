import { expect, test } from 'vitest'

import { apiKey } from '../../src/server/index.ts'
import { findLeaks } from '../support/leaks.ts'
import { openTestSetup } from '../faults/support/test-setup.ts'

const ORIGIN = 'https://app.example.com'

test('[SE1] a page of another origin can neither read nor decide approvals', async () => {
  await using setup = await openTestSetup({ allowedOrigins: [ORIGIN] })
  const person = setup.person()
  const { approvalId } = await person.ask()
  const decision = { approved: true }
  for (const origin of ['https://evil.example.com', 'null', `${ORIGIN}.evil.com`, 'file://']) {
    const refused = [
      await person.get('/approvals', { origin }),
      await person.get(`/approvals/${approvalId}`, { origin }),
      await person.post(`/approvals/${approvalId}`, decision, { origin }),
    ]
    for (const { status, code, body } of refused) {
      expect([status, code]).toEqual([403, 'forbidden-origin'])
      expect(body).not.toContain(approvalId)
    }
  }
  expect((await person.approval(approvalId))?.history).toHaveLength(1)
  expect(setup.effects()).toEqual([])
  const own = await person.post(`/approvals/${approvalId}`, decision, { origin: ORIGIN })
  expect(own.status).toBe(200)
})

test('[SE1] without valid credentials, approvals cannot be read or decided', async () => {
  await using setup = await openTestSetup({
    authenticate: apiKey({ 'key-of-hanako': 'hanako', 'key-of-taro': { id: 'taro', roles: [] } }),
  })
  const withKey = (key: string) => setup.person({ headers: { 'x-api-key': key } })
  const hanako = withKey('key-of-hanako')
  const asked = await hanako.ask()
  const strangers = [
    setup.person({ headers: {} }),
    setup.person({ headers: { 'x-user': 'hanako', authorization: 'Bearer key-of-hanako' } }),
    setup.person({ headers: { cookie: 'adk_principal=hanako.forged' } }),
    withKey('key-of-hanak'),
    withKey('KEY-OF-HANAKO'),
    withKey(''),
  ]
  for (const stranger of strangers) {
    const refused = [
      await stranger.get('/approvals'),
      await stranger.get(`/approvals/${asked.approvalId}`),
      await stranger.decide(asked.approvalId, { approved: true }),
      await stranger.decide('no-such-approval', { approved: true }),
      await stranger.answer(asked, { approved: true }),
    ]
    for (const { status, code, body } of refused) {
      expect([status, code]).toEqual([401, 'unauthenticated'])
      expect(findLeaks(body)).toEqual([])
    }
  }
  const taro = await withKey('key-of-taro').decide(asked.approvalId, { approved: true })
  expect([taro.status, taro.code]).toEqual([404, 'unknown-approval'])
  expect(setup.effects()).toEqual([])
  expect((await hanako.answer(asked, { approved: true })).status).toBe(200)
  expect(setup.effects()).toMatchObject([{ userId: 'hanako' }])
})

test('[SE1] a role that a client claims has no effect', async () => {
  await using setup = await openTestSetup({
    authenticate: apiKey({
      'key-of-clerk': { id: 'clerk', roles: ['clerk'] },
      'key-of-manager': { id: 'manager', roles: ['manager'] },
    }),
    approvals: { pay: { deciders: { roles: ['manager'] } } },
  })
  const clerk = setup.person({ headers: { 'x-api-key': 'key-of-clerk', 'x-roles': 'manager' } })
  const asked = await clerk.ask()
  const attempts = [
    await clerk.decide(asked.approvalId, { approved: true }),
    await clerk.answer(asked, { approved: true, roles: ['manager'], by: 'manager' }),
    await clerk.answer(asked, { approved: false }),
  ]
  for (const { status, code } of attempts) expect([status, code]).toEqual([403, 'not-allowed'])
  expect(setup.effects()).toEqual([])
  const manager = setup.person({ headers: { 'x-api-key': 'key-of-manager' } })
  expect(await manager.approvals()).toMatchObject([{ id: asked.approvalId }])
  expect((await manager.decide(asked.approvalId, { approved: true })).status).toBe(200)
  await expect.poll(() => setup.effects()).toMatchObject([{ userId: 'clerk', to: '花子' }])
})
