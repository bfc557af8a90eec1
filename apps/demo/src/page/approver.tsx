import { Modal, useStudio } from 'adk-stream-protocol-studio/page'
import { useState } from 'react'

import { ApproverInfo } from '../demo-info.ts'
import { useDemoLabels } from './i18n/use-demo-labels.ts'

/** Returns whether this browser is the second approver, and the path that makes it one. Undefined until it is loaded. */
function useApprover(): ApproverInfo | undefined {
  return ApproverInfo.safeParse(useStudio()?.plugin['approver']).data
}

/** Says on the page of approvals that this browser is the second approver. */
export function ApproverMark() {
  const { approver } = useDemoLabels()
  return useApprover()?.is ? <p className="approver-mark">{approver.is}</p> : null
}

/** Says in the settings how a browser becomes the second approver, or that it is one. */
export function ApproverNote() {
  const { approver } = useDemoLabels()
  const { is, address } = useApprover() ?? {}
  if (is) return <p className="fine">{approver.is}</p>
  if (address === undefined) return null
  return (
    <p className="fine">
      {approver.how} <code>{new URL(address, window.location.href).href}</code>
    </p>
  )
}

/** Asks for the code from the terminal, at the URL that makes a browser the second approver. */
export function ApproverDialog() {
  const { approver } = useDemoLabels()
  const info = useApprover()
  const [query] = useState(() => new URLSearchParams(window.location.search))
  const [isClosed, setClosed] = useState(false)
  const canAsk = info?.address !== undefined && !info.is
  const close = () => setClosed(true)
  return (
    <Modal
      open={query.get('as') === 'approver' && canAsk && !isClosed}
      label={approver.title}
      className="dialog"
      onClose={close}
    >
      <h2>{approver.title}</h2>
      {/* The server reads the code from the URL and redirects to the page. */}
      <form method="get" action="/">
        <input type="hidden" name="as" value="approver" />
        <label className="field">
          {approver.code}
          <input name="code" required autoComplete="off" aria-invalid={query.has('wrong')} />
        </label>
        {query.has('wrong') && <p role="alert">{approver.wrong}</p>}
        <div className="actions dialog-actions">
          <button type="button" className="outlined" onClick={close}>
            {approver.cancel}
          </button>
          <button type="submit" className="primary">
            {approver.enter}
          </button>
        </div>
      </form>
    </Modal>
  )
}
