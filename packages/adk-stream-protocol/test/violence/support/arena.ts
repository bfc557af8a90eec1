import { openSqliteStore, type Store } from '../../../src/store/index.ts'
import { type Folder, makeFolder } from './folder.ts'
import { Person, readEffects } from './person.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'

/** A world in this process, with a database and effects of its own. */
export interface Arena extends AsyncDisposable {
  readonly world: World
  readonly store: Store
  readonly folder: Folder
  person(who?: { user?: string; chatId?: string; headers?: Record<string, string> }): Person
  effects(chatId?: string): ReturnType<typeof readEffects>
}

export async function openArena(
  options: Partial<WorldOptions> & { readonly wrap?: (store: Store) => Store } = {},
): Promise<Arena> {
  const { wrap = (store: Store) => store, ...worldOptions } = options
  const folder = await makeFolder()
  const store = await openSqliteStore({ path: folder.database })
  const world = await openWorld({ store: wrap(store), effects: folder.effects, ...worldOptions })
  return {
    world,
    store,
    folder,
    person: (who) => new Person(world.url, who),
    effects: (chatId) => readEffects(folder.effects, chatId),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      await store.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
