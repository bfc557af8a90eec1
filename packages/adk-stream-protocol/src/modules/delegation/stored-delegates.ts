import * as z from 'zod'

import { type Decider, maySee } from '../../approvals/deciders.ts'
import type { Substitutes } from '../../approvals/substitutes.ts'
import type { PersonalRecord, PersonalRecordStore } from '../../store/tables/personal-records.ts'
import { DELEGATION_KIND } from './next-delegation.ts'

/** Reads who decides in whose place. */
export function storedDelegates(records: PersonalRecordStore, appName: string): Substitutes {
  const ownerOf = (principalId: string) => ({ appName, principalId })
  return {
    of: async ({ terms }, principals) => {
      if (!terms.mayDelegate) return []
      const lists = principals.map((id) => records.list(ownerOf(id), DELEGATION_KIND))
      const given = (await Promise.all(lists)).flat()
      return [...new Set(given.flatMap(({ about }) => about ?? []))]
    },
    maySee: async (approval, personId) => {
      if (!approval.terms.mayDelegate) return false
      const received = await records.listAbout(ownerOf(personId), DELEGATION_KIND)
      return received.some((record) => maySee(approval, readGiver(record)))
    },
  }
}

/** Returns the person in whose place a delegation lets another one decide, with the roles that they had when they gave it. */
export function readGiver({ principalId, body }: PersonalRecord): Decider {
  return { id: principalId, ...Giver.parse(JSON.parse(body)) }
}

const Giver = z.object({ roles: z.array(z.string()) })
