import type { Approval } from '../../../src/approvals/approval.ts'
import type { ApprovalStore } from '../../../src/approvals/approval-store.ts'
import type { History } from './plan.ts'

/** The lifetime of an instance. After its end, its pending calls never resolve. */
export class Life {
  #isOver = false
  #end: () => void = () => {}
  readonly ended = new Promise<void>((resolve) => {
    this.#end = resolve
  })

  end(): void {
    this.#isOver = true
    this.#end()
  }

  async check(): Promise<void> {
    if (this.#isOver) await new Promise<never>(() => {})
  }
}

/** What the watched store needs from its environment. */
export interface Surroundings {
  readonly now: number
  readonly latest: number
  readonly leaseNow: number
  readonly history: History
  pass(what: string): Promise<void>
}

/** Lets other lanes run, or kills the caller, at every call to the store. Records what is stored. */
export function watchStore(
  store: ApprovalStore,
  { life, worker: by }: { readonly life: Life; readonly worker: string },
  simulation: Surroundings,
): ApprovalStore {
  const { history } = simulation
  /** Records commits with the clocks as they are now: a store performs its statements later, in the order of the calls. */
  const createRecorder = () => {
    const { now: at, latest, leaseNow: leaseAt } = simulation
    return (approval: Approval): void => {
      history.commits.push({ at, latest, leaseAt, by, approval })
    }
  }
  const through = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    await simulation.pass('store')
    await life.check()
    const result = await work()
    await life.check()
    return result
  }
  const written = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = await through(work)
    // The caller may never receive the acknowledgement.
    await simulation.pass('answer')
    await life.check()
    return result
  }
  return {
    now: () => through(() => store.now()),
    insert: (approval, entry, quota) =>
      written(async () => {
        const record = createRecorder()
        const result = await store.insert(approval, entry, quota)
        if (result === 'inserted') {
          record(approval)
          history.pendings.push(countPending(history, approval))
        }
        return result
      }),
    get: (id) => through(() => store.get(id)),
    findByCall: (...given) => through(() => store.findByCall(...given)),
    replace: (transition) =>
      written(async () => {
        const record = createRecorder()
        const isStored = await store.replace(transition)
        if (isStored) record(transition.next)
        return isStored
      }),
    replaceAll: (transitions) =>
      written(async () => {
        const record = createRecorder()
        const isStored = await store.replaceAll(transitions)
        if (isStored) for (const { next } of transitions) record(next)
        return isStored
      }),
    list: (filter) => through(() => store.list(filter)),
    due: (limit) => through(() => store.due(limit)),
    unreported: (filter) => through(() => store.unreported(filter)),
    markReported: (...given) => through(() => store.markReported(...given)),
    audit: (filter) => store.audit(filter),
    lastSeq: () => store.lastSeq(),
    heartbeat: (worker) =>
      through(async () => {
        const { leaseNow: leaseAt } = simulation
        await store.heartbeat(worker)
        history.signs.push({ worker, leaseAt, commits: history.commits.length })
      }),
    stale: (leaseMs) => through(() => store.stale(leaseMs)),
    lockChat: (...given) => through(() => store.lockChat(...given)),
    findLockHolder: (given) => through(() => store.findLockHolder(given)),
    listLocks: (worker) => through(() => store.listLocks(worker)),
    listLockedByOthers: (filter) => through(() => store.listLockedByOthers(filter)),
    unlockChat: (...given) => through(() => store.unlockChat(...given)),
    deleteChat: (...given) => through(() => store.deleteChat(...given)),
  }
}

function countPending({ commits }: History, { chat }: Approval): History['pendings'][number] {
  const latest = new Map(commits.map(({ approval }) => [approval.id, approval]))
  const pending = [...latest.values()].filter(({ state }) => state.name === 'requested')
  return {
    ofChat: pending.filter((other) => other.chat.chatId === chat.chatId).length,
    ofPrincipal: pending.length,
  }
}
