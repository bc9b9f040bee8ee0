package stateful;

import com.vmware.xenon.common.FactoryService;
import com.vmware.xenon.common.Service;
import com.vmware.xenon.common.StatefulService;

/** A service instance with one {@link Document}, replaced by PUT and returned by GET, as is Xenon's default. */
final class DocumentService extends StatefulService {
    /** Where an instance's state lives. */
    enum Keeping {
        /** Only in the heap. */
        MEMORY,
        /** Also in a Lucene index in the sandbox, which Xenon commits every few seconds. */
        DURABLE,
        /** Durable on every node of the group; one of them owns the instance and takes its updates. */
        REPLICATED
    }

    DocumentService(Keeping keeping) {
        super(Document.class);
        toggleOption(ServiceOption.PERSISTENCE, keeping != Keeping.MEMORY);
        toggleOption(ServiceOption.REPLICATION, keeping == Keeping.REPLICATED);
        toggleOption(ServiceOption.OWNER_SELECTION, keeping == Keeping.REPLICATED);
    }

    /** Creates an instance for each POST. */
    static FactoryService factory(Keeping keeping) {
        return new FactoryService(Document.class) {
            @Override
            public Service createServiceInstance() {
                return new DocumentService(keeping);
            }
        };
    }
}
