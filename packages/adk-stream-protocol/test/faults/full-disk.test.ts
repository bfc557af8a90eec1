import type { Event } from '@google/adk'
import { expect, test } from 'vitest'

import { defer, type Deferred } from '../../src/shared/async.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { makeFolder } from './support/folder.ts'
import { openPaymentServer } from './support/payment-server.ts'
import { Person, readEffects } from './support/person.ts'

/** The disk that a store writes to. */
interface Disk {
  isFull: boolean
  /** Resolved when the lock of a turn could not be released. */
  readonly unlockFailed: Deferred<void>
}

/** Makes the writes of a store fail while its disk is full. `onAppend` is called before each write of an event. */
function fillable(store: Store, disk: Disk, onAppend: (event: Event) => void): Store {
  const { approvals, sessions } = store
  const check = (): void => {
    if (disk.isFull) throw new StoreError('full', 'The disk is full.')
  }
  const appendEvent = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async (request) => {
    onAppend(request.event)
    check()
    return appendEvent(request)
  }
  const whenNotFull =
    <Given extends unknown[], Result>(write: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      check()
      return write(...given)
    }
  approvals.replace = whenNotFull(approvals.replace.bind(approvals))
  approvals.replaceAll = whenNotFull(approvals.replaceAll.bind(approvals))
  approvals.lockChat = whenNotFull(approvals.lockChat.bind(approvals))
  const unlock = whenNotFull(approvals.unlockChat.bind(approvals))
  approvals.unlockChat = async (...given) =>
    unlock(...given).catch((error: unknown) => {
      disk.unlockFailed.resolve()
      throw error
    })
  approvals.markReported = whenNotFull(approvals.markReported.bind(approvals))
  approvals.heartbeat = whenNotFull(approvals.heartbeat.bind(approvals))
  return store
}

type Moment = 'the outcome' | 'the result' | 'the reply'

function isResult({ customMetadata = {} }: Event): boolean {
  return JSON.stringify(customMetadata).includes('"decided":')
}

function isReply({ author, content }: Event): boolean {
  return author !== 'user' && content?.parts?.some(({ text }) => text === 'Paid.') === true
}

const PAY = '[[call pay {"to": "花子", "amount": 50}]] [[then]] [[say Paid.]]'

test.for<Moment>(['the outcome', 'the result', 'the reply'])(
  '[AP825] [LG29] if the disk is full before %s of a call is stored, the agent replies when there is space',
  async (moment) => {
    await using folder = await makeFolder()
    const disk: Disk = { isFull: false, unlockFailed: defer() }
    await using opened = await openSqliteStore({ path: folder.database })
    let wasFull = false
    const fill = (at: Moment): void => {
      if (at !== moment || wasFull) return
      wasFull = true
      disk.isFull = true
    }
    const store = fillable(opened, disk, (event) => {
      if (isResult(event)) fill('the result')
      if (isReply(event)) fill('the reply')
    })
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      // The lock of the failed turn does not expire during the test.
      limits: { leaseMs: 600_000, sweepMs: 20 },
      reached: async (at) => {
        if (at === 'after effect') fill('the outcome')
      },
    })
    const person = new Person(server.url)
    const { approvalId } = await person.ask(PAY)
    const { status } = await person.decide(approvalId, { approved: true })
    expect(status).toBe(200)
    await disk.unlockFailed.promise
    disk.isFull = false
    const chat = { appName: 'adk-stream-protocol', principalId: person.user, chatId: person.chatId }
    const isLocked = async () => (await store.approvals.findLockHolder(chat)) !== undefined
    await expect.poll(isLocked, { timeout: 30_000 }).toBe(false)
    const last = async () => (await person.messages()).at(-1)
    await expect.poll(async () => textOf(await last()), { timeout: 30_000 }).toBe('Paid.')
    expect(toolParts(await last())).toMatchObject([{ state: 'output-available' }])
    expect(readEffects(folder.effects)).toHaveLength(1)
    expect(await person.approval(approvalId)).toMatchObject({ approval: { state: 'succeeded' } })
  },
)
