import type { Signal, Signals } from '../../relay/relay.ts'
import type { ContractTest } from './contract-test.ts'
import { expect } from './expect.ts'
import type { ContractDatabase, StoreContractOptions } from './store.contract.ts'

/** Defines the tests of signals between processes, which a store may leave out. */
export function signalContract(test: ContractTest, open: StoreContractOptions['open']): void {
  test('[ST623] a signal is taken by the process that it is sent to, with its content', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    const body = { text: 'ünï "quoted" \u0001', list: [1, null, { deep: true }], empty: {} }
    const signal = { id: 's-1', from: 'w-1', kind: 'stop', body }
    await one.send('w-2', signal)
    expect(await two.take('w-3')).toEqual([])
    expect(await one.take('w-1')).toEqual([])
    expect(await two.take('w-2')).toEqual([signal])
    expect(await two.take('w-2')).toEqual([])
  })

  test('[ST623] each signal is taken once, although it was sent again and several processes take', async () => {
    await using database = await open()
    const [one, two] = await openTwo(database)
    if (!one || !two) return
    const signals = Array.from({ length: 12 }, (_, index) => signalOf(`s-${index}`))
    await Promise.all(
      signals.flatMap((signal, index) => {
        const [sender, repeated] = index % 2 ? [one, two] : [two, one]
        // A process that loses its connection does not know whether a signal was sent, and repeats it.
        return index % 3 ? [sender.send('w', signal)] : [sendTwice([sender, repeated], signal)]
      }),
    )
    const taken = await Promise.all([one, two, one, two].map((each) => each.take('w')))
    const ids = taken.flatMap((each) => each.map(({ id }) => id))
    expect(new Set(ids).size).toBe(signals.length)
    expect(ids.length).toBe(signals.length)
    expect(await one.take('w')).toEqual([])
  })
}

async function sendTwice(senders: readonly Signals[], signal: Signal): Promise<void> {
  for (const sender of senders) await sender.send('w', signal)
}

function signalOf(id: string): Signal {
  return { id, from: 'w-1', kind: 'decide', body: null }
}

async function openTwo(database: ContractDatabase): Promise<(Signals | undefined)[]> {
  const stores = [await database.open(), await database.open()]
  return stores.map((store) => store.relay ?? store.signals)
}
