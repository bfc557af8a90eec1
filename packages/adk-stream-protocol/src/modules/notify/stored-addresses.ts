import type { PersonalRecordStore } from '../../store/tables/personal-records.ts'
import type { ChannelAddresses } from './notice.ts'

/** Returns the addresses that people have added to a channel. */
export function addressesOf(
  records: PersonalRecordStore,
  appName: string,
  channel: string,
): ChannelAddresses {
  const kind = toAddressKind(channel)
  return {
    list: async (principalId) =>
      (await records.list({ appName, principalId }, kind)).map(({ id, body }) => ({
        id,
        value: body,
      })),
    remove: async (principalId, id) =>
      void (await records.remove({ appName, principalId }, { kind, id })),
  }
}

/** Returns the kind of the personal records of a channel. */
export function toAddressKind(channel: string): string {
  return `address ${channel}`
}
