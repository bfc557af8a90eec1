import { openSqliteStore, type Store } from '../../../src/store/index.ts'
import { type Folder, makeFolder } from './folder.ts'
import { Person, readEffects } from './person.ts'
import {
  openPaymentServer,
  type PaymentServer,
  type PaymentServerOptions,
} from './payment-server.ts'

/** A payment server in this process, with its own database and effects file. */
export interface TestSetup extends AsyncDisposable {
  readonly paymentServer: PaymentServer
  readonly store: Store
  readonly folder: Folder
  person(who?: { user?: string; chatId?: string; headers?: Record<string, string> }): Person
  effects(chatId?: string): ReturnType<typeof readEffects>
}

export async function openTestSetup(
  options: Partial<PaymentServerOptions> & { readonly wrap?: (store: Store) => Store } = {},
): Promise<TestSetup> {
  const { wrap = (store: Store) => store, ...serverOptions } = options
  const folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  const paymentServer = await openPaymentServer({
    store: wrap(store),
    effects: folder.effects,
    ...serverOptions,
  })
  return {
    paymentServer,
    store,
    folder,
    person: (who) => new Person(paymentServer.url, who),
    effects: (chatId) => readEffects(folder.effects, chatId),
    async [Symbol.asyncDispose]() {
      await paymentServer[Symbol.asyncDispose]()
      await store.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
