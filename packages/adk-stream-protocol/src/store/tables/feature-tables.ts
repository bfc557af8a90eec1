/** The tables of a part of a store that belongs to one feature. */
export interface FeatureTables {
  /** The SQL that creates them: a part of the first migration. It never changes once it is released. In PostgreSQL, `$schema` stands for the quoted name of the schema. */
  readonly create: string
  /** The tables with rows of a principal, in the columns `app_name` and `principal_id`. They are deleted with the principal's data. */
  readonly owned: readonly string[]
  /** Those of them whose rows belong to a chat, by the column `chat_id`. They are deleted with the chat. */
  readonly ofChats?: readonly string[]
  /** The one of these whose rows keep their chat until a `deadline`, so that it is not removed as an unused one. */
  readonly keepsChats?: string
  /** The rows that hold a lease: a table and a condition. The clock of leases runs while there is one. */
  readonly leased?: string
  /** In SQLite: where the time of the lease is stored. NULL if there is none. */
  readonly leaseTime?: { readonly table: string; readonly column: string }
}

/** A write of a type. */
export type WriteOf<Write, Type> = Extract<Write, { readonly type: Type }>
