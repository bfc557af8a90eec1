/** The transition is stored only if a principal has this personal record, and its time is not over. */
export interface RequiredRecord {
  readonly type: 'require-record'
  readonly owner: { readonly appName: string; readonly principalId: string }
  readonly kind: string
  readonly id: string
}
