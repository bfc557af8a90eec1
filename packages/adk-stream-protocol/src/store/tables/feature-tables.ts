/** The tables of a part of a store that belongs to one feature. */
export interface FeatureTables {
  /** The SQL that creates them: a part of the first migration. It never changes once it is released. In PostgreSQL, `$schema` stands for the quoted name of the schema. */
  readonly create: string
  /** The tables with rows of a principal, in the columns `app_name` and `principal_id`. They are deleted with the principal's data. */
  readonly owned: readonly string[]
}
