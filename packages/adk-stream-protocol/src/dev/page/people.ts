import type { Authenticate } from '../../server/auth/authenticate.ts'
import { readCookies } from '../../server/auth/authenticate.ts'
import type { Person } from './dev-messages.ts'

/** The cookie with which the page chooses a person. It proves nothing: `dev` serves this machine only, and all people are one developer. */
const PERSON_COOKIE = 'adk_studio_person'

/** The person of a page if none is given. */
export const DEVELOPER: Person = { id: 'developer', name: 'Developer', roles: [] }

/** Reads `alice` or `alice:manager,finance`. Throws if it has no name. */
export function readPerson(text: string): Person {
  const [id = '', roles = ''] = text.split(':', 2)
  if (!/^[\w.@-]{1,64}$/.test(id))
    throw new Error(
      `--as ${text}: the name of a person has letters, digits, dots, hyphens or @. Roles follow a colon: --as alice:manager,finance`,
    )
  return { id, name: id, roles: roles.split(',').filter((role) => role !== '') }
}

/** Returns an `authenticate` that gives every browser of this machine the person that its page has chosen, or the first one. */
export function choosingPerson(people: readonly Person[]): Authenticate {
  return ({ headers }) => {
    const [chosen] = readCookies(headers, PERSON_COOKIE).map(decodeURIComponent)
    const person = people.find(({ id }) => id === chosen) ?? people[0] ?? DEVELOPER
    return { id: person.id, roles: person.roles, attributes: { name: person.name } }
  }
}
