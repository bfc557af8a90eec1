import { useState } from 'react'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { Modal } from './modal.tsx'

/** Asks for the code from the terminal, at the URL that makes a browser the second approver. */
export function ApproverDialog() {
  const { approver, cancel } = useLabels().shell
  const demo = useDemo()
  const [query] = useState(() => new URLSearchParams(window.location.search))
  const [isClosed, setClosed] = useState(false)
  const canAsk = demo?.approver.address !== undefined && !demo.approver.is
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
            {cancel}
          </button>
          <button type="submit" className="primary">
            {approver.enter}
          </button>
        </div>
      </form>
    </Modal>
  )
}
